"""Whether a pod would go to a node of given labels and taints, as the scheduler sees it."""

from collections.abc import Iterable, Mapping
from typing import Any

from kube.nodes import GPU

Object = Mapping[str, Any]


def gpus_wanted(pod: Object) -> int:
    limits = [one.get("resources", {}).get("limits", {}) for one in pod["spec"]["containers"]]
    return sum(int(one.get(GPU, 0)) for one in limits)


def anti_affine(pod: Object) -> bool:
    """Whether it wants to be alone of its kind on a node."""
    affinity = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
    return bool(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))


def fits_labels(pod: Object, labels: Mapping[str, str]) -> bool:
    """By its node selector and its required node affinity."""
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_matches(term, labels) for term in required["nodeSelectorTerms"])


def _matches(term: Object, labels: Mapping[str, str]) -> bool:
    if term.get("matchFields"):
        return False  # a node that is not there yet has no name
    return all(_holds(one, labels) for one in term.get("matchExpressions", []))


def _holds(one: Object, labels: Mapping[str, str]) -> bool:
    key, values = one["key"], one.get("values", [])
    match one["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt":
            return key in labels and int(labels[key]) > int(values[0])
        case _:
            return key in labels and int(labels[key]) < int(values[0])


def tolerates(pod: Object, taints: Iterable[Mapping[str, str]]) -> bool:
    """All that would keep it away."""
    tolerations = pod["spec"].get("tolerations", [])
    hard = [one for one in taints if one["effect"] in ("NoSchedule", "NoExecute")]
    return all(any(_covers(one, taint) for one in tolerations) for taint in hard)


def _covers(toleration: Object, taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    same = toleration.get("value", "") == taint.get("value", "")
    return toleration.get("key") == taint["key"] and same
