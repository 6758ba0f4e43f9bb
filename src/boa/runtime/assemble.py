"""From what was stored, a loop that goes on from there."""

import hashlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from boa.clock import Clock
from boa.clouds.base import Cloud
from boa.engines.base import Engine
from boa.model.budgets import Budget
from boa.model.changes import Changes
from boa.model.cluster import Policy
from boa.model.prices import CONSTANT, PriceSchedule
from boa.model.records import NodeRecord
from boa.model.service import ServiceConfig
from boa.model.sweep import Sweep
from boa.model.workload import GpuType, cheapest_node
from boa.runtime.actor import Actor, Log
from boa.runtime.loop import ControlLoop
from boa.runtime.submit_keys import SubmitKeys
from boa.runtime.vault import Vault
from boa.scheduler.check_reasons import Checker
from boa.scheduler.decide.decider import UNPLANNED_S, Decider
from boa.scheduler.decide.deciders import decider_for
from boa.scheduler.learn.node_times import NodeTimes
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.money.ledger import Totals
from boa.scheduler.money.prices_in_force import PricesInForce
from boa.scheduler.money.purse import Purse
from boa.scheduler.money.tally import Tally
from boa.scheduler.notices import META as TOLD
from boa.scheduler.notices import Notices
from boa.scheduler.observe.sampling import Sampling
from boa.scheduler.plan.calculator import Calculator
from boa.scheduler.plan.planning import Planner
from boa.scheduler.scheduler import NodeLimits, Scheduler
from boa.scheduler.state import SWEEPS, State, priced_as
from boa.store.base import Saved, Store
from boa.units import DAY_S, GpuName, Seconds

BOOT_S: Seconds = 120.0
"""Seconds until a node of a real cloud is ready, before any was seen …"""
RECLAIM_S: Seconds = 30.0
"""… and until one that was given back is gone."""


def assemble(
    config: ServiceConfig,
    *,
    url: str,
    store: Store,
    saved: Saved,
    engine: Engine,
    cloud: Cloud,
    clock: Clock,
    calculator: Calculator,
    policy: Policy,
    secret: bytes,
    log: Log,
    vault: Vault | None = None,
    report_ca: str = "",
    inline: bool = False,
    cluster: str = "",
    schedule: PriceSchedule = CONSTANT,
) -> ControlLoop:
    """`vault`: of the secrets of jobs; by default, as stored, with the key in the data folder.
    `report_ca`: certificates (PEM) that jobs are to believe the service by. `inline`: engine and
    cloud are called within the step; for tests. `schedule`: prices, as far as they are known ahead;
    the cloud charges by it."""
    vault = vault or Vault(config.data_dir / "secret.key", saved.meta)
    now = clock.now()
    state = _state(saved, store, now, cluster or new_cluster(config.data_dir))
    _pay_as_configured(state, config.sharing)
    times = _node_times(config)
    purse = Purse(
        config.budget,
        config.max_spend,
        config.pacing_h,
        now,
        config.billing,
        node=cheapest_node(config.gpu_types.values()),
        lost_s=times.boot_s + times.reclaim_s,
        sharing=config.sharing,
        calendar=config.calendar,
        terms=config.terms,
        zone=_zone(config),
    )
    times.learn(_by_request(state))
    if "money" in saved.meta:
        purse.load(saved.meta["money"], state, now)
    began = saved.meta.get("began", now)
    _store_first(store, saved, purse, state, began)
    offers = _offers(config, cloud)
    profiler = Profiler(offers, config.priors, began=began, engine=config.engine)
    profiler.load(saved.cells, saved.classes)
    actor = Actor(
        engine,
        cloud,
        clock,
        data_dir=config.data_dir,
        url=url,
        secret=secret,
        vault=vault,
        layouts=profiler.layouts,
        report_ca=report_ca,
        speed=config.speed,
        log=log,
        inline=inline,
    )
    loop = ControlLoop(
        config=config,
        clock=clock,
        store=store,
        state=state,
        scheduler=Scheduler(
            _limits(config),
            decider=_decider(config, policy, offers, profiler, times),
            beliefs=profiler,
            planner=Planner(calculator, profiler, config.replan_s, last=_last_plan(saved)),
            purse=purse,
            sampling=Sampling(config.speed, saved.points),
            prices=PricesInForce(offers, schedule),
        ),
        profiler=profiler,
        actor=actor,
        vault=vault,
        notices=Notices(
            config.notify,
            saved.meta.get(TOLD),
            _last_notice(store),
            node_usd=cheapest_node(config.gpu_types.values()),
        ),
        keys=SubmitKeys(saved.meta),
        sweeps=_sweeps(saved),
    )
    if os.environ.get("BOA_CHECK"):
        loop.checker = Checker(config.max_nodes, config.gpu_types)
    return loop


def _pay_as_configured(state: State, sharing: Budget | None) -> None:
    """Parts may pay for other people than when jobs were submitted: what these hold now, too."""
    for job in list(state.jobs.values()):
        told = (job.job_class, job.owner, job.team)
        payer = "" if sharing is None else sharing.payer_by_people(*told)
        if payer != job.payer:
            state.jobs[job.id] = replace(job, payer=payer)
    for key, hold in state.holds.items():
        if (holder := state.jobs.get(hold.job)) is not None:
            state.holds[key] = replace(hold, stream=holder.stream)


def _zone(config: ServiceConfig) -> tzinfo:
    """By whose clocks months begin."""
    calendar = config.calendar
    return UTC if calendar is None else calendar.zone


def _last_notice(store: Store) -> int:
    newest = store.notices(limit=1, newest=True)
    return newest[-1].number if newest else 0


def _last_plan(saved: Saved) -> int:
    """Number of the last plan that was told: they are counted on after a restart."""
    return int(saved.meta.get("plan", {}).get("number", 0))


def _limits(config: ServiceConfig) -> NodeLimits:
    return NodeLimits(
        max_nodes=config.max_nodes,
        keep_warm_s=config.keep_warm_s,
        refused_s=config.refused_s,
        backoff_s=config.backoff_s,
        provision_s=config.provision_s,
        speed=config.speed,
    )


def _decider(
    config: ServiceConfig,
    policy: Policy,
    offers: Mapping[GpuName, GpuType],
    profiler: Profiler,
    times: NodeTimes,
) -> Decider:
    return decider_for(
        policy,
        node_times=times,
        gpu_types=offers,
        beliefs=profiler,
        round_s=config.round_s,
        unplanned_s=UNPLANNED_S * max(config.speed, 1.0),
        priorities=config.priorities,
    )


def _node_times(config: ServiceConfig) -> NodeTimes:
    """Configured for the local cloud, assumed for others, before any node was seen."""
    local = config.cloud == "local"
    return NodeTimes(
        boot_s=config.provision_s if local else BOOT_S,
        reclaim_s=config.release_s if local else RECLAIM_S,
    )


def _by_request(state: State) -> list[NodeRecord]:
    return sorted((*state.gone.values(), *state.nodes.values()), key=lambda node: node.requested_at)


def _offers(config: ServiceConfig, cloud: Cloud) -> dict[GpuName, GpuType]:
    """GPU types that are configured and can be had, at the cloud's price."""
    known = cloud.offers()
    return {
        name: replace(kind, price=known[name].price)
        for name, kind in config.gpu_types.items()
        if name in known
    }


def _store_first(store: Store, saved: Saved, purse: Purse, state: State, began: Seconds) -> None:
    """Tokens must be known before the first node is rented under one."""
    money = {"money": purse.document(), "tally": state.tally.as_document()}
    first = {**money, "cluster": state.cluster, "began": began}
    if any(saved.meta.get(key) != value for key, value in first.items()):
        store.commit(Changes(meta=first))


def new_cluster(data_dir: Path) -> str:
    """The service's own name, which its folder gives it, and one of this database."""
    service = hashlib.sha256(str(data_dir.resolve()).encode()).hexdigest()[:8]
    return f"boa-{service}-{secrets.token_hex(4)}"


def _sweeps(saved: Saved) -> dict[str, Sweep]:
    """All there ever were, by id."""
    rows = (value for key, value in saved.meta.items() if key.startswith(SWEEPS))
    return {found.id: found for found in map(Sweep.read, rows)}


def _state(saved: Saved, store: Store, now: Seconds, cluster: str) -> State:
    totals = saved.meta.get("totals")
    money = saved.meta.get("money")
    looked: dict[str, Any] = {"since": now if money is None else money["pace"]["at"], "closed": {}}
    lately = store.nodes_between(now - DAY_S, float("inf"))
    nodes = {node.id: node for node in saved.nodes}
    holds = [priced_as(hold, nodes.get(hold.node)) for hold in saved.holds]
    return State(
        jobs={job.id: job for job in saved.jobs},
        nodes=nodes,
        holds={(hold.job, hold.node, hold.since): hold for hold in holds},
        totals=Totals() if totals is None else Totals.from_document(totals),
        tally=Tally.from_document(saved.meta.get("tally", looked)),
        serials=dict(saved.meta.get("serials", {})),
        next_job=saved.next_job,
        next_node=max(saved.next_node, 1),
        cluster=saved.meta.get("cluster") or cluster,
        sweeps={name: one for name, one in _sweeps(saved).items() if not one.over},
        next_sweep=1 + len(_sweeps(saved)),
        gone={node.token: node for node in lately if node.state == "gone"},
    )
