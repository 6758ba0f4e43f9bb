"""What faster rescaling buys: average JCT at the same budget, by what a rescaling takes.

The three example workloads at 1.5 times the cheapest budget (the authors' r): the exact plan's JCT,
and BOA's in a simulation of the public trace that the example is from, with speeds known. r is the
authors', or ours as measured on one H200 by the bytes of a model's state, through the disk or
through memory (`boa.catalogue.restarts`). Models of Sia's all have less state than the smallest
that was measured, and are taken for that one; Rubick's are spread over the least GPUs that they run
on.

.venv/bin/python bench/rescaling_gains.py [--factor 1.5] [--data ../shared/data] [--json FILE]
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

import boa
from _table import Cell, Measured, show, write
from boa.catalogue.restarts import Way, restart_s, rubick_state_bytes
from boa.catalogue.traces import read_trace
from boa.model.workload import JobClass, Workload
from boa.policy.registry import Knobs, choose
from boa.sim.run import World, simulate, world_of
from boa.sim.settings import Settings
from boa.solver.planner import frontier, plan
from boa.units import GpuName, Seconds, UsdPerHour

HERE = Path(__file__).resolve().parent
Times = Mapping[str, Seconds]
"""Seconds of a rescaling, by class."""


@dataclass(frozen=True)
class Example:
    name: str
    trace: str
    profiles: str
    gpus: tuple[GpuName, ...]


EXAMPLES = (
    Example("rubick-a800", "rubick/workloads/workload-base.csv", "rubick", ("A800",)),
    Example("newtrace-t4", "sia/workloads/newtrace/workload-1.csv", "sia/traces", ("T4",)),
    Example(
        "newtrace-hetero",
        "sia/workloads/newtrace/workload-1.csv",
        "sia/traces",
        ("T4", "V100", "A100"),
    ),
)
WAYS: Mapping[Way | None, str] = {
    None: "the authors'",
    "disk": "ours, through the disk",
    "memory": "ours, through memory",
}


def main() -> None:
    options = _arguments()
    status, console = Console(stderr=True), Console(width=150)
    table = Measured(
        f"Average JCT at {options.factor:g} times the cheapest budget, seconds",
        note="gain: JCT with the authors' r over JCT with this one; budgets are the same",
    )
    for example in EXAMPLES:
        workload = boa.load_workload(HERE.parent / "examples" / f"{example.name}.yaml")
        budget = options.factor * frontier(workload).cheapest
        status.print(f"{example.name}: {budget:.4g} an hour")
        world = _world(example, options.data)
        first: dict[str, float] = {}
        for way in WAYS:
            times = _times(example, workload, way)
            found = {"plan": _planned(workload, budget, times)}
            if world is not None:
                found |= _simulated(world, budget, times)
            status.print(f"  {way or 'authors'}: {found}")
            first = first or found
            table.add(**_row(example, way, times, found, first))
    show(table, console)
    write(options.json, [table])
    console.print(f"written to {options.json}")


def _row(
    example: Example,
    way: Way | None,
    times: Times,
    found: Mapping[str, float],
    first: Mapping[str, float],
) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        "workload": example.name,
        "r": WAYS[way],
        "r_s": _span(times),
        "plan_s": round(found["plan"], 1),
        "plan_gain": round(first["plan"] / found["plan"], 3),
    }
    if "simulated" not in found:
        return {**row, "simulated_s": "no trace here"}
    return {
        **row,
        "simulated_s": round(found["simulated"], 1),
        "simulated_gain": round(first["simulated"] / found["simulated"], 3),
        "spent_of_budget": round(found["spent"], 3),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--factor", type=float, default=1.5, help="of the cheapest budget")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="public traces")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "rescaling_gains.json")
    return parser.parse_args()


def _times(example: Example, workload: Workload, way: Way | None) -> Times:
    if way is None:
        return {each.name: each.rescale_s for each in workload.classes}
    return {each.name: restart_s(_state(example, each), way) for each in workload.classes}


def _state(example: Example, job_class: JobClass) -> float:
    """Bytes on one GPU; 0 stands for less than was measured."""
    if example.profiles != "rubick":
        return 0.0
    return rubick_state_bytes(job_class.name, job_class.min_on(example.gpus[0]))


def _planned(workload: Workload, budget: UsdPerHour, times: Times) -> Seconds:
    classes = tuple(replace(each, rescale_s=times[each.name]) for each in workload.classes)
    return plan(replace(workload, classes=classes), budget).objective


def _world(example: Example, data: Path) -> World | None:
    """None: the public trace is not here."""
    if not (data / example.trace).exists():
        return None
    trace = read_trace(data / example.trace)
    return world_of(trace, data / example.profiles, example.gpus)


def _simulated(world: World, budget: UsdPerHour, times: Times) -> dict[str, float]:
    """Average JCT, and spend over budget."""
    truths = {
        app: replace(truth, rescale_s=times.get(truth.name, truth.rescale_s))  # type: ignore[type-var]
        for app, truth in world.truths.items()
    }
    choice = choose("boa", Knobs(budget=budget))
    settings = Settings(interval_s=None, learning="perfect")
    found = simulate(replace(world, truths=truths), choice, settings)
    return {"simulated": found.average_jct, "spent": found.spend_per_hour / budget}


def _span(times: Times) -> str:
    found = sorted(times.values())
    low, high = f"{found[0]:.3g}", f"{found[-1]:.3g}"
    return low if low == high else f"{low}–{high}"


if __name__ == "__main__":
    main()
