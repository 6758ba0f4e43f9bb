"""A service's work, drawn: planned against measured on the frontier, and GPUs over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from boa.amounts import duration, rate
from boa.model.workload import Workload
from boa.plots.words import unit_for
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (10.6, 4.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoClassOutcome:
    """Jobs of one class: what was planned for each, and what came."""

    name: str
    jobs: int
    failed: int
    planned_jct: Seconds
    jct: Seconds
    planned_cost: Usd
    cost: Usd


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOutcome:
    budget: UsdPerHour
    span_s: Seconds
    """Jobs arrived over so long: what a spend per hour is over, as in a plan."""
    workload: Workload
    """The workload that was planned for."""
    classes: tuple[DemoClassOutcome, ...]
    cost: Mapping[str, Any]
    """As `boa cost --json`."""
    real: Mapping[str, Any]
    """The job that really trained."""
    began: Seconds
    ended: Seconds
    events: Sequence[Mapping[str, Any]]

    @property
    def jobs(self) -> int:
        return sum(c.jobs for c in self.classes)

    def mean(self, figure: str) -> float:
        """Over all jobs, of a figure of their class."""
        return sum(c.jobs * float(getattr(c, figure)) for c in self.classes) / self.jobs

    def per_hour(self, figure: str) -> UsdPerHour:
        return self.mean(figure) * self.jobs / self.span_s * SECONDS_PER_HOUR

    def document(self) -> dict[str, Any]:
        return {
            "jobs": self.jobs,
            "failed": sum(c.failed for c in self.classes),
            "budget_per_hour": self.budget,
            "planned_jct_s": self.mean("planned_jct"),
            "measured_jct_s": self.mean("jct"),
            "planned_spend_per_hour": self.per_hour("planned_cost"),
            "measured_spend_per_hour": self.per_hour("cost"),
            "cost": dict(self.cost),
            "real_job": {key: self.real[key] for key in ("state", "loss", "rescalings")},
        }


def live_picture(outcome: DemoOutcome, suffix: str) -> bytes:
    from boa.plots.style import saved

    return saved(draw_live(outcome), suffix)


def draw_live(outcome: DemoOutcome) -> "Figure":
    import matplotlib
    from matplotlib.figure import Figure

    from boa.plots import style

    with matplotlib.rc_context(style.RC):
        figure = Figure(figsize=SIZE, layout="constrained")
        left, right = figure.subplots(1, 2)
        for axes in (left, right):
            style.quiet_axes(axes)
        _frontier(left, outcome)
        _usage(right, outcome)
        return figure


def _frontier(axes: "Axes", outcome: DemoOutcome) -> None:
    from boa.plots import style
    from boa.plots.curve import curve_of
    from boa.solver.planner import frontier

    found = frontier(outcome.workload)
    curve = curve_of(outcome.workload, found, most=2.5 * outcome.budget)
    length, sign = unit_for(outcome.mean("planned_jct"))
    axes.plot(curve.budgets, curve.jcts / length, color=style.BLUE, lw=2.2, label="best possible")
    points = (
        ("planned", "planned_cost", "planned_jct", "o", style.BLUE),
        ("measured", "cost", "jct", "D", style.VERMILLION),
    )
    for name, cost, jct, marker, colour in points:
        at = outcome.per_hour(cost), outcome.mean(jct)
        label = f"{name}: {duration(at[1])} for {rate(at[0])}"
        axes.plot(
            at[0], at[1] / length, marker, ms=8, color=colour, mec="white", mew=1.2, label=label
        )
    axes.set_title("What the money bought")
    axes.set_xlabel("Spend on jobs ($/h)")
    axes.set_ylabel(f"Average JCT ({sign})")
    axes.legend(frameon=False, fontsize=9)


def _usage(axes: "Axes", outcome: DemoOutcome) -> None:
    """GPUs that jobs of each class hold, stacked, and what is rented for them."""
    from boa.plots import style

    times, held, rented = usage(outcome.events, outcome.began, outcome.ended)
    minutes = (times - outcome.began) / 60.0
    colours = style.PALETTE[: len(held)]
    axes.stackplot(
        minutes, *held.values(), labels=list(held), colors=colours, step="post", alpha=0.85, lw=0
    )
    axes.step(minutes, rented, where="post", color=style.INK, lw=1.2, label="rented")
    axes.set_title("GPUs over time")
    axes.set_xlabel("Minutes (the service's)")
    axes.set_ylabel("GPUs")
    axes.set_ylim(0, max(rented.max(), 1) * 1.3)
    axes.legend(frameon=False, fontsize=8.5, ncols=3, loc="upper left")


def usage(
    events: Sequence[Mapping[str, Any]], began: Seconds, ended: Seconds
) -> tuple[Any, dict[str, Any], Any]:
    """Moments, GPUs held by class at each, and GPUs rented: from a service's events."""
    times = sorted({began, ended, *(float(e["at"]) for e in events if began <= e["at"] <= ended)})
    classes = dict.fromkeys(e["data"]["job_class"] for e in events if "job_class" in e["data"])
    widths: dict[str, tuple[str, int]] = {}
    nodes: dict[int, int] = {}
    held = {name: np.zeros(len(times)) for name in classes}
    rented = np.zeros(len(times))
    queue = sorted(events, key=lambda e: e["number"])
    for n, moment in enumerate(times):
        while queue and queue[0]["at"] <= moment:
            _follow(queue.pop(0), widths, nodes)
        for job_class, width in widths.values():
            held[job_class][n] += width
        rented[n] = sum(nodes.values())
    return np.array(times), held, rented


def _follow(event: Mapping[str, Any], widths: dict[str, tuple[str, int]], nodes: Any) -> None:
    kind, data = event["kind"], event["data"]
    if kind in ("started", "rescaled", "restarted"):
        widths[event["job"]] = (data["job_class"], data["width"])
    elif kind in ("succeeded", "failed", "stopped", "retry"):
        widths.pop(event["job"], None)
    elif kind == "node_rented":
        nodes[event["node"]] = data["gpus"]
    elif kind in ("node_released", "node_gone", "node_lost"):
        nodes.pop(event["node"], None)
