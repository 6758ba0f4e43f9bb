"""Fields of `boa.yaml` on how long things are kept: details in the store, packages, artifacts."""

from boa.formats.containers import as_given, object_of
from boa.formats.settings import DEFAULTS
from boa.formats.shapes import Field, nullable, number, then, whole
from boa.model.history_kept import HistoryKept

MAX_PACKAGE_MB = 1024.0
MAX_GB = 1e6
MAX_DAYS = 36_500.0
MAX_EVENTS = 100_000_000
_DAYS = number(least=0, most=MAX_DAYS)

_PACKAGES = object_of(
    Field(
        "max_mb",
        then(number(above=0, most=MAX_PACKAGE_MB), lambda size: max(1, round(size * 1024**2))),
        "MB that one may have, packed.",
        otherwise=f"{DEFAULTS['package_bytes'] / 1024**2:g}",
        to="package_bytes",
    ),
    Field(
        "keep_days",
        _DAYS,
        "Days that one is kept after it was last submitted with; while an active job uses it, it "
        "stays.",
        default=DEFAULTS["packages_kept_days"],
        to="packages_kept_days",
    ),
    make=as_given,
)
_ARTIFACTS = object_of(
    Field(
        "keep_days",
        _DAYS,
        "Days that they are kept after the end of their job.",
        default=DEFAULTS["artifacts_kept_days"],
        to="artifacts_kept_days",
    ),
    Field(
        "max_gb",
        nullable(then(number(above=0, most=MAX_GB), lambda size: max(1, round(size * 1024**3)))),
        "GB that those of all ended jobs may take together: the oldest go first.",
        otherwise="no limit",
        to="artifacts_bytes",
    ),
    make=as_given,
)
_KEEP = object_of(
    Field(
        "events",
        whole(least=1000, most=MAX_EVENTS),
        "The newest so many events.",
        default=HistoryKept().events,
    ),
    Field(
        "samples_days",
        number(least=1, most=MAX_DAYS),
        "Days that the budget, GPUs wanted and jobs of every minute are kept, and what jobs that "
        "are as old reported.",
        default=HistoryKept().samples_days,
    ),
    Field(
        "jobs_days",
        nullable(number(least=1, most=MAX_DAYS)),
        "Days that a job is kept after its end, with all that it reported; at least a day longer "
        "than its artifacts. What it cost stays.",
        otherwise="for good",
    ),
    make=HistoryKept,
)
KEEPING = (
    Field("keep", _KEEP, "How long the store keeps details. What was paid is kept for good."),
    Field("packages", _PACKAGES, "Folders that were packed and sent with jobs."),
    Field("artifacts", _ARTIFACTS, "Files that jobs leave in `$BOA_ARTIFACTS`."),
)
