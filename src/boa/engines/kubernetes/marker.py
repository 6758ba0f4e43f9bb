"""Markers that runs are found again by: on the service's disk, and on their pods."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from boa.engines.kubernetes.luggage import MOST_PIECES
from boa.engines.kubernetes.names import Part, secret_names
from boa.model.runs import RunKey
from boa.units import GpuName, Seconds

MOST = 10**6
_HERE_ALONE = ("launched", "asked_s")
_JOB = re.compile(r"[A-Za-z0-9-]*[A-Za-z0-9][A-Za-z0-9-]*")


@dataclass(slots=True, kw_only=True)
class Marker:
    tag: str = ""
    """Another start of the same run has another."""
    pods: list[dict[str, Any]] = field(default_factory=list)
    """See `Part`."""
    gpu_type: GpuName = ""
    image: str = ""
    grace_s: Seconds = 0.0
    """The job's."""
    pieces: int = 0
    """Secrets that its package is in."""
    launched: bool = False
    """Whether its workers may have begun."""
    asked_s: Seconds | None = None
    """The grace that it was given when it was told to stop."""

    def parts(self) -> list[Part]:
        return [Part(**{**part, "ranks": tuple(part["ranks"])}) for part in self.pods]

    def secrets(self, owner: str, key: RunKey) -> list[str]:
        """The names of its Secrets."""
        return secret_names(owner, key, self.tag, self.pieces)

    def about(self, key: RunKey) -> dict[str, Any]:
        """As its pods have it."""
        own = {name: one for name, one in asdict(self).items() if name not in _HERE_ALONE}
        return {"job": key.job, "attempt": key.attempt, **own}


def told_by(about: Mapping[str, Any]) -> tuple[RunKey, Marker] | None:
    """The run that a pod says it is of; None: nothing that we could go on with."""
    try:
        rest = dict(about)
        key = RunKey(str(rest.pop("job")), int(rest.pop("attempt")))
        marker = Marker(**rest, launched=True)
        known = _JOB.fullmatch(key.job) and 0 <= key.attempt < 10**9 and _is_sound(marker)
        return (key, marker) if known and marker.parts() else None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _is_sound(marker: Marker) -> bool:
    """Whoever may change pods may have written it."""
    texts = [marker.tag, marker.gpu_type, marker.image]
    texts += [text for part in marker.parts() for text in (part.name, part.node, part.label)]
    numbers = [marker.pieces, *(part.gpus for part in marker.parts())]
    numbers += [rank for part in marker.parts() for rank in part.ranks]
    return (
        all(isinstance(text, str) for text in texts)
        and all(type(number) is int and 0 <= number < MOST for number in numbers)
        and marker.pieces <= MOST_PIECES
        and 0 <= float(marker.grace_s) < MOST
    )
