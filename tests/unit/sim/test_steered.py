"""What the price of money does in the whole scheduler where jobs come in bursts."""

from collections.abc import Iterator

from boa.policy.market.policy import Market
from boa.sim.knowledge import ExpectedArrivals, Knowledge
from boa.sim.run import World
from boa.sim.scheduled import ScheduledSimulation
from boa.sim.settings import Settings
from boa.solver.planner import plan
from simulations import job, world

NODES = Settings(interval_s=300.0, provision_s=120.0, learning="perfect", billing="node")


def bursts(each: int) -> World:
    """Every twelve hours so many jobs within minutes."""
    at = [12 * 3600.0 * n + 20.0 * k for n in range(3) for k in range(each)]
    return world([job(f"j{n}", moment, "patient") for n, moment in enumerate(at)], {"T4": 4})


def planned_with(of: World) -> Iterator[float]:
    """Over the budget, from the first burst on."""
    arrivals = ExpectedArrivals.of(of.trace)
    knowledge = Knowledge(of.truths, of.gpu_types, arrivals, NODES)
    budget = 2.0 * plan(of.workload, 1e9).cheapest
    found = list[float]()
    simulation = ScheduledSimulation(
        of.trace.jobs, knowledge, Market(), NODES, span_s=of.trace.span_s, budget=budget
    )
    simulation.run(lambda *_: found.append(simulation.scheduler.purse.effective / budget))
    yield from found[10:]


def test_a_burst_hardly_moves_the_price_where_rates_are_known() -> None:
    found = list(planned_with(bursts(40)))
    assert max(found) / min(found) < 1.15
