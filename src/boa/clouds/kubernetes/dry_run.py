"""Steps that a service would take in a cluster, and whether its account may. Changes nothing."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from boa import kubelink
from boa.amounts import dollars, rate
from boa.api.hosts import is_loopback
from boa.clouds.kubernetes import claims, placeholders
from boa.clouds.kubernetes.lease import Holder, hindrance
from boa.clouds.kubernetes.objects import KubeNode, node_of, selector
from boa.clouds.kubernetes.rights import Right, needed, useful
from boa.clouds.kubernetes.watching import Sight
from boa.kubelink import Kube, KubeTrouble, NotFound, Refused
from boa.model.kubernetes_names import GPUS
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.workload import GpuType
from boa.units import GpuName, UsdPerHour

What: TypeAlias = Literal[
    "cluster", "price", "limit", "nodes", "make", "release", "allowed", "fits",
    "denied", "missing", "taken", "warning",
]  # fmt: skip
"""The kind of a step; `denied`, `missing` and `taken` are those that a service could not take."""
UNAUTHORIZED = 401
TRIAL = "dry-run"
"""The last part of the names under which objects are tried."""


@dataclass(frozen=True, slots=True)
class Step:
    what: What
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a dry run asks about. `service`: begins every token; `known`: tokens of nodes that
    are written down; `pod`: one of a job's, as the engine would make it; `image`: of jobs that
    name none."""

    settings: KubernetesSettings
    gpu_types: Mapping[GpuName, GpuType]
    max_nodes: Mapping[GpuName, int]
    max_spend: UsdPerHour | None
    service: str
    holder: Holder
    known: Collection[str]
    pod: Mapping[str, Any]
    image: str
    url: str


def dry_run(kube: Kube, plan: Plan, wall: float) -> list[Step]:
    try:
        return [
            *_cluster(kube, plan),
            *_unseen(plan),
            *_money(plan),
            *_rights(kube, plan.settings),
            *_nodes(kube, plan),
            *_made(kube, plan),
            *_given_back(kube, plan),
            *_lease(kube, plan, wall),  # last: what is wrong beside it stays so when that one ends
        ]
    except KubeTrouble as trouble:
        return [Step("missing", _why(trouble, kube, plan.settings))]


def _why(trouble: KubeTrouble, kube: Kube, settings: KubernetesSettings) -> str:
    if trouble.status != UNAUTHORIZED:
        return str(trouble)
    found = settings.kubeconfig or "the kubeconfig that was found, or of this pod"
    return f"{kube.server} does not accept the account of {found} ({trouble})"


def _cluster(kube: Kube, plan: Plan) -> Iterator[Step]:
    version = kube.get("/version").get("gitVersion", "of no version")
    yield Step("cluster", f"{kube.server}: Kubernetes {version}, namespace {kube.namespace}")
    settings = plan.settings
    yield Step(
        "cluster", f"owner {settings.owner}, nodes {settings.nodes}, jobs report to {plan.url}"
    )


def _unseen(plan: Plan) -> Iterator[Step]:
    """Steps about what only jobs would meet, or nobody can tell from here."""
    settings = plan.settings
    if is_loopback(urlsplit(plan.url).hostname or ""):
        each = f"{plan.url} is every pod itself, so that no job could report there"
        yield Step("warning", f"{each}: set url to where pods reach this service")
    if not plan.image:
        told = "kubernetes.image has none, nor has the template"
        yield Step("missing", f"an image for jobs that name none: {told}")
    named = sorted(set(_named(settings.pod_template.get("spec") or {})))
    if named:
        told = f"pod_template names {', '.join(named)}"
        yield Step("warning", f"{told}: whether they are there is not looked at")


_NAMES = {
    "claimName": "claim",
    "secret": "secret",
    "secretName": "secret",
    "secretRef": "secret",
    "secretKeyRef": "secret",
    "imagePullSecrets": "secret",
    "configMap": "config map",
    "configMapRef": "config map",
    "configMapKeyRef": "config map",
}
"""Fields of a pod that name another object, and what it is."""


def _named(part: Any, field: str = "") -> Iterator[str]:
    """Objects that a template needs beside it, at whatever depth."""
    if isinstance(part, str) and field in _NAMES:
        yield f"the {_NAMES[field]} {part}"
    elif isinstance(part, list):
        for one in part:
            yield from _named(one, field)
    elif isinstance(part, dict):
        if field in _NAMES and isinstance(part.get("name"), str):
            yield f"the {_NAMES[field]} {part['name']}"
        for key, value in part.items():
            yield from _named(value, key)


def _money(plan: Plan) -> Iterator[Step]:
    for name, gpu in plan.gpu_types.items():
        cost = f"{dollars(gpu.price)} per GPU and hour, {gpu.gpus_per_node} GPUs a node"
        yield Step("price", f"{name}: {cost}")
        yield Step("limit", f"{name}: {plan.max_nodes.get(name, 'any number of')} nodes")
    spend = "none" if plan.max_spend is None else rate(plan.max_spend)
    yield Step("limit", f"spend at any moment: {spend}")


def _lease(kube: Kube, plan: Plan, wall: float) -> Iterator[Step]:
    name = plan.settings.owner
    try:
        found = hindrance(kube.get(kubelink.leases(kube.namespace, name)), plan.holder, wall)
    except NotFound:
        found = None
    except Refused:
        return  # the rights have it
    if found is None:
        yield Step("make", f"the lease {name}, or take the one that is there")
    else:
        holder, age = found
        yield Step("taken", f"the lease {name}: by {holder.told}, renewed {age:.0f} s ago")


def _rights(kube: Kube, settings: KubernetesSettings) -> Iterator[Step]:
    has_class = settings.nodes == "autoscaler" and _has_priority_class(kube, settings)
    for right in needed(settings, has_class=has_class):
        yield Step("allowed" if _may(kube, right) else "denied", right.told(kube.namespace))
    for right, without in useful():
        if not _may(kube, right):
            yield Step("warning", f"may not {right.told(kube.namespace)}: {without}")


def _may(kube: Kube, right: Right) -> bool:
    return kube.may(
        right.verb,
        right.resource,
        group=right.group,
        namespace="" if right.everywhere else None,
        subresource=right.subresource,
        name=right.name,
    )


def _has_priority_class(kube: Kube, settings: KubernetesSettings) -> bool:
    try:
        kube.get(kubelink.priority_classes(settings.autoscaler.priority_class))
    except NotFound:
        return False
    except Refused:
        return True
    return True


def _nodes(kube: Kube, plan: Plan) -> Iterator[Step]:
    label = plan.settings.node_label
    try:
        listed = [node_of(said, label) for said in kube.list(kubelink.nodes(), labels=label)]
    except Refused:
        return
    for name, gpu in plan.gpu_types.items():
        yield from _of_type(name, gpu, [n for n in listed if n.gpu == name], plan.settings)


def _of_type(
    name: GpuName, gpu: GpuType, nodes: Collection[KubeNode], settings: KubernetesSettings
) -> Iterator[Step]:
    usable = [node for node in nodes if not node.lacks(gpu.gpus_per_node)]
    gpus = sum(node.gpus for node in nodes)
    label = f"{settings.node_label}={name}"
    told = f"{len(nodes)} with the label {label}, {len(usable)} of use, {gpus} {GPUS}"
    if settings.nodes == "fixed" and not usable:
        lacking = next((f": {node.lacks(gpu.gpus_per_node)}" for node in nodes), "")
        yield Step("missing", f"{name}: {told}{lacking}")
        return
    yield Step("nodes", f"{name}: {told}")
    larger = [node for node in usable if node.gpus > gpu.gpus_per_node]
    if larger:
        unused = f"{larger[0].name} has {larger[0].gpus}, gpus_per_node is {gpu.gpus_per_node}"
        yield Step("warning", f"{name}: GPUs that nobody would use: {unused}")


def _made(kube: Kube, plan: Plan) -> Iterator[Step]:
    settings = plan.settings
    yield Step("make", "for each run: a Secret, and a pod on each of its nodes")
    yield from _tried(kube, "a job's pod", kubelink.pods(kube.namespace), plan.pod)
    for name, gpu in plan.gpu_types.items():
        token = f"{plan.service}-{TRIAL}"
        if settings.nodes == "karpenter":
            machine = settings.karpenter.machines[name]
            kinds = " or ".join(machine.instance_types) or "by its requirements"
            yield Step("make", f"for each {name} node: a NodeClaim ({kinds}, {machine.capacity})")
            body = claims.claim(settings, kube.namespace, gpu, token)
            yield from _tried(kube, f"a NodeClaim for {name}", kubelink.node_claims(), body)
        elif settings.nodes == "autoscaler":
            yield Step("make", f"for each {name} node: a placeholder pod that asks for all of it")
            yield from _placeholder(kube, plan, gpu, token)


def _placeholder(kube: Kube, plan: Plan, gpu: GpuType, token: str) -> Iterator[Step]:
    settings = plan.settings
    name = settings.autoscaler.priority_class
    if not _has_priority_class(kube, settings):
        yield Step("make", f"the PriorityClass {name} ({placeholders.PRIORITY})")
        body = placeholders.priority_class(name)
        yield from _tried(kube, "a PriorityClass", kubelink.priority_classes(), body)
        return  # a pod of a class that is not there would be refused
    body = placeholders.wish(settings, kube.namespace, gpu, token)
    path = kubelink.pods(kube.namespace)
    yield from _tried(kube, f"a placeholder for {gpu.name}", path, body)


def _tried(kube: Kube, what: str, path: str, body: Mapping[str, Any]) -> Iterator[Step]:
    """By the API server itself: whether it would take it."""
    try:
        kube.create(path, body, dry_run=True)
        yield Step("fits", f"{what}: the API server would take it")
    except NotFound as none:
        known = "the API server knows no NodeClaims (karpenter.sh/v1)"
        yield Step("missing", known if path == kubelink.node_claims() else f"{what}: {none}")
    except Refused as no:
        yield Step("denied", f"{what}: {no}")
    except KubeTrouble as trouble:
        yield Step("denied", f"{what}: the API server would not take it: {trouble}")


def _given_back(kube: Kube, plan: Plan) -> Iterator[Step]:
    try:
        found = list(_there(kube, plan))
    except (Refused, NotFound):
        return
    for sight in found:
        if sight.token not in plan.known:
            where = f" ({sight.node.name})" if sight.node is not None else ""
            told = f"{sight.gpu} {sight.token}{where}: nobody here has it"
            yield Step("release", told)


def _there(kube: Kube, plan: Plan) -> Collection[Sight]:
    settings, prefix = plan.settings, f"{plan.service}-"
    label, owner, namespace = settings.node_label, settings.owner, kube.namespace
    if settings.nodes == "karpenter":
        ours = selector(owner=owner, namespace=namespace)
        nodes = [node_of(said, label) for said in kube.list(kubelink.nodes(), labels=ours)]
        return claims.sights(kube.list(kubelink.node_claims(), labels=ours), nodes, prefix)
    if settings.nodes == "autoscaler":
        pods = kube.list(
            kubelink.pods(namespace),
            labels=f"{selector(owner=owner)},{placeholders.PLACEHOLDER}",
        )
        nodes = [node_of(said, label) for said in kube.list(kubelink.nodes(), labels=label)]
        scene, _ = placeholders.scene(pods, nodes, owner, namespace)
        return placeholders.sights(scene, prefix)
    return ()
