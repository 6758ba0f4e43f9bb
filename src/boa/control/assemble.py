"""From what was stored, a loop that goes on from there."""

import uuid
from collections.abc import Callable
from dataclasses import replace

from boa.clock import Clock
from boa.clouds.base import Cloud
from boa.control.acting import Actor, Log
from boa.control.calculator import Calculator
from boa.control.deciding import Decider
from boa.control.ledger import Totals
from boa.control.loop import ControlLoop
from boa.control.money import Purse
from boa.control.planning import Planner
from boa.control.profiler import Profiler
from boa.control.state import State
from boa.engines.base import Engine
from boa.model.cluster import Policy
from boa.model.service import ServiceConfig
from boa.store.base import Changes, Saved, Store


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
    inline: bool = False,
    cluster: Callable[[], str] = lambda: f"boa-{uuid.uuid4().hex[:8]}",
) -> ControlLoop:
    now = clock.now()
    purse = Purse(config.budget, config.max_spend, config.pacing_h, now)
    state = _state(saved, cluster)
    if "money" in saved.meta:
        purse.load(saved.meta["money"], state, now)
    began = saved.meta.get("began", now)
    first = Changes(meta={"money": purse.document(), "cluster": state.cluster, "began": began})
    if any(saved.meta.get(key) != value for key, value in first.meta.items()):
        store.commit(first)
    offers = {
        name: replace(kind, price=offer.price)
        for name, kind in config.gpu_types.items()
        if (offer := cloud.offers().get(name)) is not None
    }
    profiler = Profiler(offers, config.priors, began=began)
    profiler.load(saved.cells, saved.classes)
    return ControlLoop(
        config=config,
        clock=clock,
        store=store,
        state=state,
        decider=Decider(policy=policy, gpu_types=offers, profiler=profiler, round_s=config.round_s),
        profiler=profiler,
        planner=Planner(calculator, profiler, config.replan_s),
        purse=purse,
        actor=Actor(
            engine,
            cloud,
            clock,
            data_dir=config.data_dir,
            url=url,
            secret=secret,
            speed=config.speed,
            log=log,
            inline=inline,
        ),
    )


def _state(saved: Saved, cluster: Callable[[], str]) -> State:
    totals = saved.meta.get("totals")
    return State(
        jobs={job.id: job for job in saved.jobs},
        nodes={node.id: node for node in saved.nodes},
        holds={(hold.job, hold.node, hold.since): hold for hold in saved.holds},
        totals=Totals() if totals is None else Totals.from_document(totals),
        serials=dict(saved.meta.get("serials", {})),
        next_job=saved.next_job,
        next_node=max(saved.next_node, 1),
        cluster=saved.meta.get("cluster") or cluster(),
    )
