"""Rights that a service needs in a cluster, mode by mode. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from boa.model.kubernetes_settings import KubernetesSettings


@dataclass(frozen=True, slots=True)
class Right:
    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    name: str = ""
    """Name of the one object that it is needed for."""
    everywhere: bool = False
    """In all namespaces, or of what is in none."""

    def told(self, namespace: str) -> str:
        what = "/".join(filter(None, (self.resource, self.subresource, self.name)))
        where = "in the whole cluster" if self.everywhere else f"in namespace {namespace}"
        return f"{self.verb} {what} {where}"


def needed(settings: KubernetesSettings, *, has_class: bool = True) -> Iterator[Right]:
    """`has_class`: the priority class of placeholders is there."""
    for verb in ("get", "list", "create", "patch", "delete"):
        yield Right(verb, "pods")
    yield Right("get", "pods", subresource="log")
    for verb in ("create", "delete"):
        yield Right(verb, "secrets")
    for verb in ("get", "create", "update"):
        name = "" if verb == "create" else settings.owner
        yield Right(verb, "leases", "coordination.k8s.io", name=name)
    for verb in ("get", "list"):
        yield Right(verb, "nodes", everywhere=True)
    if settings.nodes == "karpenter":
        for verb in ("list", "create", "delete"):
            yield Right(verb, "nodeclaims", "karpenter.sh", everywhere=True)
    if settings.nodes == "autoscaler":
        yield from _of_autoscaler(settings, has_class)


def _of_autoscaler(settings: KubernetesSettings, has_class: bool) -> Iterator[Right]:
    name, group = settings.autoscaler.priority_class, "scheduling.k8s.io"
    yield Right("patch", "nodes", everywhere=True)
    yield Right("get", "priorityclasses", group, name=name, everywhere=True)
    if not has_class:
        yield Right("create", "priorityclasses", group, everywhere=True)
    if settings.autoscaler.evict_others:
        yield Right("list", "pods", everywhere=True)
        yield Right("create", "pods", subresource="eviction", everywhere=True)


def useful() -> Iterator[tuple[Right, str]]:
    """Those that one can do without, and what is lost then."""
    yield Right("list", "events"), "why a pod does not start is then told in fewer words"
