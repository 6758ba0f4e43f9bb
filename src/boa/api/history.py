"""Shapes of answers on what was, over time."""

from typing_extensions import TypedDict


class GpuHistory(TypedDict):
    """GPUs of one type, averages of each stretch of time."""

    rented: list[float]
    """Paid for."""
    used: list[float]
    """Held by jobs."""
    wanted: list[float | None]
    """GPUs that the plan had for all active jobs; null where nobody noted it down."""


class History(TypedDict):
    """The cluster and its cost over time, by the ledger."""

    since: float
    until: float
    step_s: float
    """Length of a stretch; all lists have one number for each, in order."""
    spend_per_hour: list[float]
    average_spend_per_hour: list[float | None]
    """From `since`, or the first charge if that is later, to the end of each stretch."""
    budget_per_hour: list[float | None]
    """Null before it was noted down."""
    gpus: dict[str, GpuHistory]
    """By type."""
    active_jobs: list[float | None]
    waiting_jobs: list[float | None]
    now: float


class JobRun(TypedDict):
    """GPUs that a job held, from one start to its stop."""

    since: float
    until: float | None
    """Null: it still does."""
    gpu_type: str
    width: int
    nodes: list[int]
    cost_usd: float
    """Up to now."""


class JobPoint(TypedDict):
    """Report of a job on itself at some moment."""

    at: float
    epoch: int
    progress: float
    """Units done of that epoch."""
    step: int | None
    loss: float | None
    batch_size: float | None
    rate: float | None
    """Units per second since the point before, of the same run; null for a run's first."""


class JobHistory(TypedDict):
    """How a job went. Points get sparser as a job gets older: about a hundred in all."""

    runs: list[JobRun]
    points: list[JobPoint]
    now: float
