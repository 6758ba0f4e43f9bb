"""Checks of a job when it is submitted: what no pod could run is refused at once. Pure."""

from collections.abc import Callable

from boa.engines.kubernetes.luggage import TooLarge, check_size
from boa.engines.kubernetes.manifest import image_of
from boa.engines.kubernetes.template import read
from boa.errors import InputError
from boa.model.job_spec import JobSpec
from boa.model.kubernetes_settings import KubernetesSettings


def checks(settings: KubernetesSettings) -> Callable[[JobSpec, int], None]:
    """A function of a job and the bytes of its package, that raises InputError."""
    template = read(settings.pod_template)

    def check(spec: JobSpec, package_bytes: int) -> None:
        image_of(spec.image, template, settings)
        try:
            check_size(package_bytes)
        except TooLarge as trouble:
            expected = "what is large in its image, or in a volume of kubernetes.pod_template"
            raise InputError("package", spec.package, expected, str(trouble)) from None

    return check
