"""A trace whose jobs belong to teams: every team trains classes of its own."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from boa.model.trace import TraceJob
from boa.sim.report import SimulationReport
from boa.sim.run import World
from boa.units import Seconds, UsdPerHour


def class_of(team: str, application: str) -> str:
    """The class that a team's jobs of an application are."""
    return f"{team}.{application}"


def with_teams(world: World, team_of: Callable[[TraceJob], str]) -> World:
    """The same jobs, each of a class of its team's."""
    jobs, truths = [], {}
    for job in world.trace.jobs:
        name = class_of(team_of(job), job.application)
        jobs.append(replace(job, application=name))
        truths[name] = replace(world.truths[job.application], name=name)  # type: ignore[type-var]
    return replace(world, trace=replace(world.trace, jobs=tuple(jobs)), truths=truths)


def only(world: World, team: str) -> World:
    """The jobs of one team alone; the trace takes as long."""
    prefix = class_of(team, "")
    jobs = tuple(job for job in world.trace.jobs if job.application.startswith(prefix))
    return replace(world, trace=replace(world.trace, jobs=jobs))


def jct_of(report: SimulationReport, classes: Iterable[str]) -> Seconds:
    """Mean over the jobs of these classes that ended."""
    sums = [report.tally.per_class.get(name, [0.0, 0.0]) for name in classes]
    return sum(total for _, total in sums) / max(sum(jobs for jobs, _ in sums), 1.0)


def bill_of(report: SimulationReport, classes: Iterable[str]) -> UsdPerHour:
    """Their part of the bill: what nobody held is shared out as what jobs held."""
    held = report.tally.class_usd
    mine, all_of_it = sum(held.get(name, 0.0) for name in classes), sum(held.values())
    return report.bill_per_hour * mine / all_of_it if all_of_it else 0.0
