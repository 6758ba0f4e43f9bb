"""Shapes of what was learned of a class: what `boa show CLASS --json` prints.

Speedups are those of the whole training at one width, against the least width of the first GPU
type as it is believed to run.
"""

from typing import NotRequired

from typing_extensions import TypedDict

from boa.api.of_class import OfClass


class GpuLimits(TypedDict):
    """GPUs that jobs of a class can use."""

    min: int
    max: int
    types: list[str]
    """Empty: any."""


class PartTimes(TypedDict):
    """How long one part of a rescaling took."""

    mean_s: float
    count: int


class Curve(TypedDict):
    """Beliefs for every width that can run and is not barred by a failure; all lists are of one
    length."""

    widths: list[int]
    speedup: list[float]
    rate: list[float]
    """Units per second."""


class Sample(TypedDict):
    """Measurements at one width, over all epochs."""

    width: int
    across_nodes: bool
    rate: float
    """Units per second."""
    seconds: float
    reports: int
    speedup: float | None
    """Null where the class cannot run at this width today."""
    measured_speedup: float | None
    """Against the least width that was measured, without what is believed."""


class FailedWidth(TypedDict):
    """A width at which runs failed before they got anywhere, while others went well elsewhere."""

    width: int
    across_nodes: bool
    times: int
    reason: str
    """Reason of the last one …"""
    said: str
    """… and the line of its log that tells most of why, for who may read that log; else empty."""
    at: float
    """When that failed."""
    job: str
    """Whose it was."""
    again_at: float | None
    """When it may be tried again; null: not by itself (`POST /classes/{name}/retry`)."""


class RetriedWidth(TypedDict):
    """A width that is used again, or tried, as if it had not failed."""

    gpu_type: str
    width: int
    across_nodes: bool
    times: int
    reason: str


class RetriedClass(TypedDict):
    retried: list[RetriedWidth]
    """Empty: nothing of this kind had failed."""
    now: float


class TriedLayout(TypedDict):
    """A layout of the class's model over GPUs that jobs have tried (`wrap(parallel="auto")`)."""

    width: int
    nodes: int
    layout: str
    local_batch: int
    """Samples that one GPU took in one pass."""
    passes: int
    """Passes before the one that ended in a step."""
    batch: int
    """Samples of a step, over all GPUs."""
    step_s: float | None
    """Seconds of a step; null: it never got so far."""
    samples_per_s: float | None
    peak_bytes: int | None
    """Most memory of a GPU that it held; null: unknown."""
    out_of_memory: bool
    fastest: bool
    """Whether it is the fastest that was measured on so many GPUs and nodes."""
    why: str
    """Reason for which it was chosen then, in words."""


class ClassOnType(TypedDict):
    """A class on one GPU type."""

    name: str
    gpus_per_node: int
    tried: int
    """Widest width that a job ran at."""
    offered: int
    """Widest width that plans may choose, or trials try."""
    settled: NotRequired[list[int]]
    """Widths that jobs have trained on for `settle_s`: plans may use those that make jobs faster.
    Missing where an older version says it."""
    curve: Curve
    measured_from: int | None
    """Width that measured speedups are against; null: nothing was measured."""
    samples: list[Sample]
    failed: list[FailedWidth]
    """By width; those wider, or narrower, than one that failed are not used either."""
    layouts: list[TriedLayout]
    """By width, nodes and name."""


class ClassDocument(OfClass):
    """Knowledge of a class: curves, work, arrivals, rescaling times."""

    prior: str
    """Where the curves start from, in words."""
    jobs: int
    succeeded: int
    gpus: GpuLimits
    weight: float
    arrivals_per_hour: float
    rescale_s: float
    """Typical time of a rescaling, as plans count on it."""
    settle_s: NotRequired[float]
    """Seconds of training after which a width is settled."""
    engine: str
    """Engine that runs its jobs now."""
    rescaling: dict[str, dict[str, PartTimes]]
    """By engine and part; `total` first."""
    epochs: int
    work: list[float]
    """Units of every epoch."""
    work_known: NotRequired[bool]
    """False: no spec, script or job has shown how many there are; plans suppose an hour."""
    noise_scale: list[float | None]
    """Samples, of every epoch; null where nothing was measured."""
    gpu_types: list[ClassOnType]
