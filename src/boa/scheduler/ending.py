"""The end of a budget: nothing is rented any more, runs end with their grace. Pure."""

from dataclasses import replace

from boa.scheduler.moving import move
from boa.scheduler.observe.nodes import give_back_empty
from boa.scheduler.state import Draft
from boa.scheduler.stop_cost import Saves, unknown


def wind_down(draft: Draft, why: str, saves: Saves = unknown) -> None:
    """Nobody has GPUs any more; whoever ran is told to stop, with its grace, and waits from its
    checkpoint. Nodes go as soon as they are empty.

    `why`: what jobs say meanwhile; `saves`: whether jobs of a class are believed to save when they
    are asked to stop.
    """
    for job in list(draft.jobs.values()):
        if job.allocation is not None and not job.stop_requested:
            draft.put_job(replace(job, allocation=None, why={"taken": "ended"}))
    move(draft, saves=saves)
    for job in list(draft.jobs.values()):
        held = job.stop_requested or job.held_back
        if not held and job.reason != why:
            draft.put_job(replace(job, reason=why))
    give_back_empty(draft, 0.0, ())
