"""The report: what a running job posts to $BOA_REPORT_URL, as `boa.train.session` writes it.

Hundreds come in a second, and only the run's own token lets one in: `attempt_of` reads no more than
the token's check needs.
"""

from typing import Any

from boa.formats.containers import as_given, list_of, mapping_of, object_of
from boa.formats.shapes import (
    FLAG,
    Field,
    Format,
    Shape,
    Wrong,
    needed,
    nullable,
    number,
    or_empty,
    text,
    then,
    whole,
)
from boa.model.layouts import MOST, MOST_KEPT, MOST_NAME, MOST_WORDS, Trial
from boa.model.records import RESCALE_PARTS, EpochEnd, Report

MAX_METRICS = 100
MAX_METRIC_NAME = 100
MAX_ENDS = 64
_LARGEST = 1.7976931348623157e308


def _measured(value: Any) -> float | None:
    """A figure of the training's own. One that diverged (NaN, infinite) is left out: the rest of
    the report still counts."""
    if type(value) is not float and type(value) is not int:
        raise Wrong(value, "a number")
    return float(value) if -_LARGEST <= value <= _LARGEST else None


def _those_known(figures: dict[str, float | None]) -> dict[str, float]:
    return {name: figure for name, figure in figures.items() if figure is not None}


def _times(**figures: float | None) -> dict[str, float]:
    """Figures that can be times; others are left out, like a loss that diverged."""
    return {name: s for name, s in figures.items() if s is not None and s >= 0}


_FIGURE = Shape(_measured, {"type": "number"}, "number; left out if not finite")
_COUNT = whole(least=0, most=MOST)
_AMOUNT = number(least=0)
_METRIC = text(
    f"names of at most {MAX_METRIC_NAME} printable characters",
    pattern="",
    most=MAX_METRIC_NAME,
    fits=str.isprintable,
)
_METRICS = mapping_of(
    _METRIC,
    _FIGURE,
    called="NAME",
    least=0,
    most=MAX_METRICS,
    expected=f"a mapping from at most {MAX_METRICS} names to numbers",
    words=f"mapping from up to {MAX_METRICS} names to numbers",
)
_PART_MEANINGS = {
    "stop": "From SIGTERM until all ranks have stopped.",
    "save": "From then until its checkpoint is published.",
    "start": "From the new process's beginning until its process group and device are there.",
    "load": "From then until model and checkpoint are loaded.",
    "first_step": "By how much the first step is longer than others.",
}
_RESCALE = object_of(
    *(Field(name, nullable(_FIGURE), _PART_MEANINGS[name]) for name in RESCALE_PARTS), make=_times
)
_END = object_of(
    needed("epoch", _COUNT, "Epochs done by then."),
    needed(
        "values",
        mapping_of(
            _METRIC,
            nullable(_FIGURE),
            called="NAME",
            least=0,
            most=MAX_METRICS + 1,
            words="mapping from names to numbers; null: not finite",
        ),
        "The newest of `loss` and of every metric by then.",
    ),
    make=EpochEnd,
)
_LAYOUT_NAME = text(
    f"at most {MOST_NAME} letters, digits, + and -", pattern=r"^[A-Za-z0-9+-]+$", most=MOST_NAME
)
_WORDS = text(
    f"at most {MOST_WORDS} printable characters", pattern="", most=MOST_WORDS, fits=str.isprintable
)
_LAYOUT = object_of(
    needed("gpu", _METRIC, "GPU type; empty: unknown."),
    needed("width", whole(most=MOST), "GPUs."),
    needed("nodes", whole(most=MOST), "Nodes that these were on."),
    needed("layout", _LAYOUT_NAME, "Its name, as `wrap(parallel=…)` takes it."),
    needed("local_batch", whole(most=MOST), "Samples that one GPU took in one pass."),
    Field("passes", _COUNT, "Passes before the one that ended in a step.", default=0),
    Field("step_s", nullable(number(above=0)), "Seconds of one step.", default=None),
    Field("batch", _COUNT, "Samples of that step, over all GPUs.", default=0),
    Field("peak_bytes", nullable(_COUNT), "Most memory of a GPU that it held.", default=None),
    Field("out_of_memory", FLAG, "Whether it ran out of memory.", default=False),
    Field("why", _WORDS, "Reason for which it was chosen, in words.", default=""),
    make=Trial,
)
_ATTEMPT = needed("attempt", whole(most=MOST), "`BOA_ATTEMPT`.")

REPORT = Format(
    "BOA report",
    "How far a running job is: posted to `$BOA_REPORT_URL` with `$BOA_REPORT_TOKEN` as bearer. "
    "Times are the server's seconds.",
    object_of(
        _ATTEMPT,
        needed(
            "uptime_s", _AMOUNT, "Since the process began, in the server's seconds (× `BOA_SPEED`)."
        ),
        needed("epoch", _COUNT, "Which epoch it is in, counted from 0."),
        needed("progress", _AMOUNT, "Units done of this epoch, those before a restart included."),
        needed("units", _AMOUNT, "Units done by this attempt, over all its epochs."),
        Field("step", nullable(_COUNT), "Steps of the optimizer so far."),
        Field("loss", nullable(_FIGURE), "The training's loss."),
        Field("metrics", or_empty(then(_METRICS, _those_known)), "Whatever else is measured."),
        Field(
            "rescale",
            or_empty(_RESCALE),
            "What the rescaling before this attempt took, by part, in the server's seconds.",
        ),
        Field(
            "layouts",
            or_empty(list_of(_LAYOUT, least=0, most=MOST_KEPT)),
            "Layouts of its model over GPUs that it has tried (`wrap(parallel=…)`).",
        ),
        Field(
            "ends",
            or_empty(list_of(_END, least=0, most=MAX_ENDS)),
            "Epochs that have ended since the last report that arrived.",
        ),
        Field(
            "saves",
            nullable(FLAG),
            "Whether the job saves a checkpoint when it is asked to stop (SIGTERM); null: it has "
            "not said so.",
            default=None,
        ),
        Field(
            "saved_s",
            nullable(_AMOUNT),
            "`uptime_s` at which the newest complete checkpoint was taken. 0: the one that this "
            "attempt resumed from; null: there is none.",
            default=None,
        ),
        Field(
            "total",
            nullable(number(above=0)),
            "Units of the whole job, all epochs together, as the script knows them; null: unknown.",
            default=None,
        ),
        Field(
            "done",
            FLAG,
            "Whether the job's work is finished: exit code 0 then ends the job, also after a stop.",
            default=False,
        ),
        make=as_given,
    ),
)


def attempt_of(body: Any) -> int:
    """Whose report it says it is, before anybody has believed it."""
    if not isinstance(body, dict) or "attempt" not in body:
        REPORT.shape.read(body)
    return int(_ATTEMPT.shape.read(body["attempt"], "attempt"))


def read_report(body: Any, job: str) -> Report:
    """The report of a job, with every field checked."""
    return Report(job=job, **REPORT.shape.read(body))
