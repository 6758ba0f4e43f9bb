"""Shapes of answers on simulations that run beside the service."""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class TraceChoice(TypedDict):
    """A trace that can be picked."""

    name: str
    about: str
    jobs: int
    hours: float
    """From the first arrival to the last."""
    gpu_types: list[str]
    """That its jobs can be simulated on."""
    budgets: list[float]
    """Sensible ones to start with, in USD per hour."""


class PolicyChoice(TypedDict):
    """A policy that can be picked."""

    name: str
    about: str
    """One line: what every job gets, and on which cluster."""
    knob: str | None
    """What it is swept over: budget, target_efficiency, nodes (a fixed cluster about as large as
    each budget buys) or width; null: nothing."""
    several_gpu_types: bool
    """Whether it uses more than one."""


class TraceChoices(TypedDict):
    traces: list[TraceChoice]
    policies: list[str]
    """Their names."""
    policy_choices: list[PolicyChoice]
    """The same, with what tells them apart."""


class Simulation(TypedDict):
    """One question: policies × budgets on one trace."""

    id: str
    state: Literal["waiting", "running", "done", "failed", "stopped"]
    trace: str
    policies: list[str]
    budgets: list[float]
    gpu_types: list[str]
    asked_at: float
    """Of the wall, Unix seconds."""
    points_done: int
    points: int
    error: str
    """Empty unless it failed."""
    result: NotRequired[dict[str, Any]]
    """As `boa compare --json` prints it: points, comparisons, left_out. Where it is done, and one
    simulation was asked for."""


class SimulationAnswer(TypedDict):
    simulation: Simulation


class SimulationList(TypedDict):
    simulations: list[Simulation]
    """Newest first, without results."""
