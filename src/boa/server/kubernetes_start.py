"""A cluster's refusals while a service starts there, in words that name the setting."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from boa.errors import InputError
from boa.model.kubernetes_settings import KubernetesSettings

if TYPE_CHECKING:
    from boa.kubelink import Kube, KubeTrouble

UNAUTHORIZED = 401
OWN = "~/.kube/config, or of the pod that this is"
MORE = "`boa serve --dry-run` tells all that is missing"


@contextmanager
def starting_in(kube: "Kube | None", settings: KubernetesSettings) -> Iterator[None]:
    """Raises InputError where the user has to change something; a cluster that does not answer is
    no fault of theirs."""
    if kube is None:
        yield
        return
    from boa.kubelink import KubeTrouble

    try:
        yield
    except KubeTrouble as trouble:
        wrong = refusal(trouble, kube, settings)
        raise (trouble if wrong is None else wrong) from None


def refusal(
    trouble: "KubeTrouble", kube: "Kube", settings: KubernetesSettings
) -> InputError | None:
    from boa.kubelink import NotFound, Refused

    if trouble.status == UNAUTHORIZED:
        found = settings.kubeconfig or os.environ.get("KUBECONFIG") or OWN
        problem = f"{kube.server} does not accept the account of {found} ({trouble})"
        expected = f"one whose token or certificate that server accepts; {MORE}"
        return InputError("kubernetes.kubeconfig", found, expected, problem)
    if isinstance(trouble, NotFound) and "namespaces " in str(trouble):
        problem = f"{kube.server} has no namespace {kube.namespace}"
        expected = f"one that is there (kubectl create namespace {kube.namespace}); {MORE}"
        return InputError("kubernetes.namespace", kube.namespace, expected, problem)
    if isinstance(trouble, Refused):
        problem = f"in namespace {kube.namespace} of {kube.server}: {trouble}"
        expected = (
            "an account with the rights of docs/kubernetes.md in this namespace, or "
            f"kubernetes.namespace and kubernetes.kubeconfig that name another; {MORE}"
        )
        return InputError("kubernetes", None, expected, problem)
    return None
