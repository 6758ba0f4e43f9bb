"""A launch made into what is sent to the cluster: Secrets and pods."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from boa.engines import launching
from boa.engines.kubernetes import luggage, manifest
from boa.engines.kubernetes.marker import Marker
from boa.engines.kubernetes.names import labels, pod_name, secret_names
from boa.engines.kubernetes.template import Template
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.runs import Launch


@dataclass(frozen=True, slots=True)
class Beginning:
    marker: Marker
    secrets: Sequence[dict[str, Any]]
    pods: Mapping[str, dict[str, Any]]
    """By name."""


def beginning(
    launch: Launch,
    settings: KubernetesSettings,
    template: Template,
    *,
    workdir: str,
    log_bytes: int,
) -> Beginning:
    """Raises InputError where there is no image that could be run, TooLarge and OSError where its
    package cannot go along."""
    key, owner, spec = launch.key, settings.owner, launch.spec
    image = manifest.image_of(spec.image, template, settings)
    pieces = luggage.pieces(Path(launch.package).read_bytes() if launch.package else b"")
    names = [pod_name(owner, key, str(slot.node)) for slot in launch.slots]
    parts = luggage.parts_of(launch, names)
    gang = len(parts) > 1
    marker = Marker(
        tag=uuid.uuid4().hex[:8],
        pods=[asdict(part) for part in parts],
        gpu_type=launch.gpu_type,
        image=image,
        grace_s=spec.grace_s,
        pieces=len(pieces),
        launched=not gang,
    )
    documents = luggage.documents(
        launch,
        parts,
        tag=marker.tag,
        port=launching.free_port(),
        workdir=spec.workdir or workdir,
        log_bytes=log_bytes,
        image=image,
        kept=template.keeps(launch.checkpoint_dir),
    )
    of_secrets = secret_names(owner, key, marker.tag, len(pieces))
    contents = luggage.contents(of_secrets, documents, launch.secrets, pieces)
    common = manifest.RunPods(
        key=key,
        owner=owner,
        image=image,
        grace_s=spec.grace_s,
        about=marker.about(key),
        gang=gang,
        luggage=of_secrets,
        secrets=bool(launch.secrets),
    )
    return Beginning(
        marker,
        [luggage.secret(name, labels(owner, key), data) for name, data in contents],
        {
            part.name: manifest.pod(common, part, number, template)
            for number, part in enumerate(parts)
        },
    )
