"""Where nodes come from: Karpenter's claims, or placeholders that an autoscaler sees."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from boa import kubelink
from boa.clouds.kubernetes import claims, placeholders
from boa.clouds.kubernetes.objects import KubeNode, name_of, node_of, selector, token_of
from boa.clouds.kubernetes.placeholders import Hold, Mark, Remove, Scene, Step
from boa.clouds.kubernetes.watching import Sight
from boa.errors import InputError
from boa.kubelink import Exists, Invalid, Kube, KubeTrouble, NotFound, Refused
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.workload import GpuType
from boa.units import GpuName, Seconds

_log = logging.getLogger(__name__)


class Source(Protocol):
    """Objects in the cluster, one or more for each token. Repeating any call is harmless."""

    def look(self) -> Sequence[Sight]:
        """All that is there of ours, after doing what brings it on."""
        ...

    def spare(self, gpu: GpuType) -> str:
        """Token of the node, given back and still there, that `ask` would take over: then there is
        not one more. Empty if there is none."""
        ...

    def ask(self, token: str, gpu: GpuType) -> None:
        """Raises Refused or Invalid where it is refused."""
        ...

    def take_away(self, token: str) -> None: ...


class KarpenterNodes:
    """A NodeClaim for each token, named after it. `prefix`: begins this service's tokens."""

    def __init__(self, kube: Kube, settings: KubernetesSettings, prefix: str) -> None:
        self._kube, self._settings, self._prefix = kube, settings, prefix
        self._ours = selector(owner=settings.owner, namespace=kube.namespace)
        try:
            self._claims()
        except NotFound:
            raise InputError(
                "kubernetes.nodes",
                settings.nodes,
                "fixed or autoscaler, or a cluster with Karpenter 1.0 or newer",
                "the API server knows no NodeClaims (karpenter.sh/v1)",
            ) from None

    def look(self) -> Sequence[Sight]:
        listed = self._kube.list(kubelink.nodes(), labels=self._ours)
        nodes = [node_of(said, self._settings.node_label) for said in listed]
        return claims.sights(self._claims(), nodes, self._prefix)

    def spare(self, gpu: GpuType) -> str:
        return ""  # a claim that is deleted cannot be had back

    def ask(self, token: str, gpu: GpuType) -> None:
        body = claims.claim(self._settings, self._kube.namespace, gpu, token)
        try:
            self._kube.create(kubelink.node_claims(), body)
        except Exists:
            return  # asked for before

    def take_away(self, token: str) -> None:
        self._kube.delete(kubelink.node_claims(name_of(token, self._prefix)))

    def _claims(self) -> list[dict[str, Any]]:
        return self._kube.list(kubelink.node_claims(), labels=self._ours)


class AutoscalerNodes:
    """Placeholder pods, see `placeholders`. `types`: names of the GPU types."""

    def __init__(
        self,
        kube: Kube,
        settings: KubernetesSettings,
        prefix: str,
        types: Collection[GpuName],
        wall: Callable[[], Seconds] = time.time,
    ) -> None:
        self._kube, self._settings, self._prefix, self._wall = kube, settings, prefix, wall
        self._types = f"{settings.node_label} in ({','.join(sorted(types))})"
        self._scene = Scene()
        _make_priority_class(kube, settings.autoscaler.priority_class)

    def look(self) -> Sequence[Sight]:
        ours = f"{selector(owner=self._settings.owner)},{placeholders.PLACEHOLDER}"
        pods = self._kube.list(kubelink.pods(self._kube.namespace), labels=ours)
        nodes = self._nodes()  # later than the pods, so that theirs are among them
        self._scene, every = placeholders.scene(
            pods, nodes, self._settings.owner, self._kube.namespace
        )
        for step in placeholders.steps(self._scene, every):
            self._do(step)
        return placeholders.sights(self._scene, self._prefix)

    def spare(self, gpu: GpuType) -> str:
        node = placeholders.to_take_over(self._scene, gpu)
        if node is None:
            return ""
        token = placeholders.token_on(node)
        return token_of(token, token, self._prefix)

    def ask(self, token: str, gpu: GpuType) -> None:
        if any(token == placeholders.token_on(node) for node in self._scene.nodes.values()):
            return
        node = placeholders.to_take_over(self._scene, gpu)
        if node is not None:
            try:
                self._do(Mark(node.name, token, gpu.name, self._wall()))
                self._scene = Scene(self._scene.pods, _without(self._scene, node))
                return
            except NotFound:  # the autoscaler was quicker
                pass
        body = placeholders.wish(self._settings, self._kube.namespace, gpu, token)
        try:
            self._kube.create(kubelink.pods(self._kube.namespace), body)
        except Exists:
            return

    def take_away(self, token: str) -> None:
        """Nothing new comes onto its node before what keeps it there goes."""
        name = name_of(token, self._prefix)
        owner, namespace = self._settings.owner, self._kube.namespace
        for node in self._nodes():
            if not placeholders.is_ours(node, owner, namespace):
                continue
            if placeholders.token_on(node) == name and not placeholders.is_released(node):
                self._patch(node.name, placeholders.cordon(self._wall()))
                self._evict_others(node.name)
        for pod in (name, placeholders.hold_name(name)):
            self._kube.delete(kubelink.pods(namespace, pod), grace_s=placeholders.GRACE_S)

    def _nodes(self) -> list[KubeNode]:
        listed = self._kube.list(kubelink.nodes(), labels=self._types)
        return [node_of(said, self._settings.node_label) for said in listed]

    def _do(self, step: Step) -> None:
        settings, namespace = self._settings, self._kube.namespace
        match step:
            case Mark():
                self._kube.patch(
                    kubelink.nodes(step.node), placeholders.marks(settings, namespace, step)
                )
            case Hold():
                body = placeholders.hold(settings, namespace, step.gpu, step.token, step.node)
                try:
                    self._kube.create(kubelink.pods(namespace), body)
                except Exists:
                    return
            case Remove():
                self._kube.delete(kubelink.pods(namespace, step.pod), grace_s=placeholders.GRACE_S)

    def _patch(self, node: str, body: dict[str, Any]) -> None:
        try:
            self._kube.patch(kubelink.nodes(node), body)
        except NotFound:
            return

    def _evict_others(self, node: str) -> None:
        """Pods that no DaemonSet brings and that are not ours: whoever guards them may say no."""
        if not self._settings.autoscaler.evict_others:
            return
        try:
            pods = self._kube.list(kubelink.pods(), fields=f"spec.nodeName={node}")
            for pod in filter(placeholders.is_evictable, pods):
                self._evict(pod["metadata"]["namespace"], pod["metadata"]["name"])
        except KubeTrouble as trouble:
            _log.warning("pods of others stay on %s: %s", node, trouble)

    def _evict(self, namespace: str, name: str) -> None:
        body = {"kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        path = f"{kubelink.pods(namespace, name)}/eviction"
        try:
            try:
                self._kube.create(path, {**body, "apiVersion": "policy/v1"})
            except Invalid:  # before Kubernetes 1.22
                self._kube.create(path, {**body, "apiVersion": "policy/v1beta1"})
        except NotFound:
            return
        except Refused:
            raise
        except KubeTrouble as trouble:  # 429: a budget of disruptions is against it
            _log.warning("%s/%s stays where it is: %s", namespace, name, trouble)


def _without(scene: Scene, node: KubeNode) -> dict[str, KubeNode]:
    return {name: one for name, one in scene.nodes.items() if name != node.name}


def _make_priority_class(kube: Kube, name: str) -> None:
    try:
        kube.get(kubelink.priority_classes(name))
        return
    except NotFound:
        pass
    try:
        kube.create(kubelink.priority_classes(), placeholders.priority_class(name))
    except Exists:
        return
    except Refused as no:
        raise InputError(
            "kubernetes.autoscaler.priority_class",
            name,
            "one that is there, or an account that may make it",
            f"there is none, and {no}",
        ) from None
