"""Shapes of sweeps: jobs that differ in their parameters, in one line each."""

from typing_extensions import TypedDict

from boa.api.of_class import OfClass


class HalvingRule(TypedDict):
    """Jobs that do worse than others end early."""

    metric: str
    better: str
    factor: int
    first: int
    rungs: list[int]
    """Epochs after which jobs are compared."""


class Member(TypedDict):
    """A job of a sweep."""

    job: str
    state: str
    parameters: dict[str, str]
    epoch: int
    """Counted from 0."""
    value: float | None
    """The newest of the metric that it reported."""
    cost_usd: float
    reason: str


class SweepRow(OfClass):
    """A sweep in a list."""

    id: str
    name: str
    owner: str
    team: str
    submitted_at: float
    ended_at: float | None
    outcome: str
    """As of one job: succeeded where one of its jobs has and none has failed; empty: not over."""
    jobs: int
    states: dict[str, int]
    """Jobs by state."""
    gpus: int
    """GPUs that all of them hold."""
    cost_usd: float
    """All of them together, up to now."""
    metric: str
    best: Member | None
    """The job with the best value of the metric so far."""


class SweepDetails(SweepRow):
    """All there is to say of a sweep."""

    halving: HalvingRule | None
    members: list[Member]
    """In the order they were drawn."""


class SweepAnswer(TypedDict):
    sweep: SweepDetails


class SweepList(TypedDict):
    sweeps: list[SweepRow]
    """Newest first."""
    now: float
