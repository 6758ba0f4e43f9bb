"""One step of deciding under the market, from the draft to who runs where: nothing is stored.

All jobs have reported once, as all do that have run for a while.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path

from _steps import GPU, MODELS
from boa.catalogue.offers import gpu_types
from boa.catalogue.priors import catalogue_profile
from boa.model.cluster import JobId
from boa.model.records import NodeRecord
from boa.model.runs import RunEvent, RunKey
from boa.policy.market.policy import Market
from boa.scheduler.observe.commands import submit
from boa.scheduler.observe.messages import EngineSaid
from boa.scheduler.state import Draft
from live import Live, config, prior, spec  # `_steps` knows where it is

BUDGET = 6.0
"""USD per hour and job: about two GPUs for each of the jobs that are there."""
AT_ONCE = 250
"""Jobs that come together while the scene is set: nodes for thousands at once would be rented eight
by eight."""
TICK_S = 61.0
"""After which the market looks again though nothing has happened."""


def market_scenes(jobs: int, folder: Path) -> tuple[Live, dict[str, Callable[[], None]]]:
    """A service with so many running jobs, and what may happen to it; every time for the first
    time: it is another job that ends than the last time."""
    types = gpu_types([GPU])
    known = {name: catalogue_profile(name, types) for name in MODELS}
    profiles = {name: found for name, found in known.items() if found is not None}
    priors = {name: prior(found, jobs / 4) for name, found in profiles.items()}
    settings = config(folder, budget=BUDGET * jobs, gpu_types=types, priors=priors)
    live = Live(settings, profiles, policy=Market())
    live.settle()
    for n in range(jobs):
        live.loop.submit(spec(MODELS[n % len(MODELS)], epochs=100))
        if n % AT_ONCE == AT_ONCE - 1:
            live.settle()
    live.settle()
    for job in live.loop.state.jobs.values():
        if job.run is not None:
            run = replace(job.run, reported_at=live.clock.now())
            live.loop.state.jobs[job.id] = replace(job, run=run, saves=True)
    running = cycle([job.id for job in live.loop.state.jobs.values() if job.run is not None])
    return live, {
        "nothing happens": lambda: _step(live, lambda draft: None),
        "a tick with nothing new": lambda: _step(live, lambda draft: None, TICK_S),
        "one job arrives": lambda: _step(live, _arrives),
        "one job ends": lambda: _step(live, lambda draft: _ends(live, draft, next(running))),
        "a node gets ready": lambda: _step(live, _gets_ready),
    }


def _step(live: Live, happens: Callable[[Draft], None], later_s: float = 0.0) -> None:
    """From the draft on, as the loop has it; what is remembered is as it was, after."""
    loop = live.loop
    scheduler = loop.scheduler
    decider, purse = scheduler.decider, scheduler.purse.remembered()
    before = (decider.memory, decider.next_round, decider.unwanted, decider.short)
    draft = Draft(loop.state, live.clock.now() + later_s)
    happens(draft)
    scheduler.decide(draft, deque())
    scheduler.purse.restore(purse)
    decider.memory, decider.next_round, decider.unwanted, decider.short = before


def _arrives(draft: Draft) -> None:
    submit(draft, spec(MODELS[0], epochs=100), gpu_types([GPU]), {})


def _ends(live: Live, draft: Draft, job_id: JobId) -> None:
    job = draft.jobs[job_id]
    assert job.run is not None
    ended = RunEvent(key=RunKey(job.id, job.run.attempt), ended=True, exit_code=0)
    live.loop.scheduler.observe(draft, EngineSaid([ended]))


def _gets_ready(draft: Draft) -> None:
    last: NodeRecord = next(reversed(draft.nodes.values()))
    new = draft.state.next_node
    draft.put_node(replace(last, id=new, token=f"{draft.state.cluster}-{new}"))
    draft.state.next_node += 1
    draft.replan = True
