"""The service's own scheduler for a simulation: as `runtime/assemble.py` makes it, of settings."""

import math
from collections.abc import Mapping

from boa.model.cluster import Policy
from boa.model.prices import PriceSchedule
from boa.model.service import ClassPrior
from boa.model.workload import GpuType, cheapest_node
from boa.policy.registry import ROUND_S
from boa.scheduler.decide.decider import UNPLANNED_S
from boa.scheduler.decide.deciders import decider_for
from boa.scheduler.learn.beliefs import Beliefs
from boa.scheduler.learn.node_times import NodeTimes
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.money.prices_in_force import PricesInForce
from boa.scheduler.money.purse import Purse
from boa.scheduler.observe.sampling import Sampling
from boa.scheduler.plan.calculator import QUIET_S, InlineCalculator
from boa.scheduler.plan.planning import REPLAN_S, Planner
from boa.scheduler.scheduler import NodeLimits, Scheduler
from boa.sim.settings import Settings
from boa.units import GpuName, Seconds, UsdPerHour

NO_BUDGET: UsdPerHour = 1.0
"""Budget of a purse whose policy follows none: it is never planned with."""


def scheduler_of(
    policy: Policy,
    settings: Settings,
    types: Mapping[GpuName, GpuType],
    known: Beliefs,
    prices: PriceSchedule,
    *,
    budget: UsdPerHour | None,
    ends_at: Seconds,
    priors: Mapping[str, ClassPrior],
) -> Scheduler:
    """`known`: what is believed of jobs, unless the service's profiler learns it, from `priors`
    on."""
    beliefs, (replan_s, quiet_s) = known, _plans_anew(settings)
    if settings.learning == "service":
        beliefs = Profiler(types, priors, began=0.0)
    return Scheduler(
        NodeLimits(
            max_nodes=settings.max_nodes,
            keep_warm_s=settings.keep_warm_s,
            provision_s=settings.provision_s,
        ),
        decider=decider_for(
            policy,
            gpu_types=types,
            beliefs=beliefs,
            round_s=settings.interval_s or ROUND_S,
            unplanned_s=UNPLANNED_S,
            node_times=NodeTimes(boot_s=settings.provision_s, reclaim_s=settings.reclaim_s),
        ),
        beliefs=beliefs,
        planner=Planner(InlineCalculator(), beliefs, replan_s, quiet_s),
        purse=_purse(settings, types, budget, ends_at),
        sampling=Sampling(1.0, {}),
        prices=PricesInForce(types, prices),
    )


def _plans_anew(settings: Settings) -> tuple[Seconds, Seconds]:
    """After which a plan is made anew in any case, and within which never."""
    if settings.learning == "service":
        return REPLAN_S, QUIET_S
    if settings.pacing_h is not None or settings.billing == "node" or settings.calendar:
        return math.inf, QUIET_S  # pacing moves the budget, and what it is planned with
    return math.inf, REPLAN_S


def _purse(
    settings: Settings,
    types: Mapping[GpuName, GpuType],
    budget: UsdPerHour | None,
    ends_at: Seconds,
) -> Purse:
    horizon_h = settings.pacing_h
    if horizon_h is None and settings.billing == "gpu":
        horizon_h = math.inf
    return Purse(
        budget or NO_BUDGET,
        settings.max_spend,
        horizon_h,
        0.0,
        settings.billing,
        ends_at=ends_at,
        node=cheapest_node(types.values()),
        lost_s=settings.provision_s + settings.reclaim_s,
        sharing=settings.sharing,
        calendar=settings.calendar,
    )
