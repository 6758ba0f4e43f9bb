"""Sweeps as users ask for them: submitted whole, stopped whole. All pure."""

from collections.abc import Sequence
from dataclasses import replace

from boa.formats.sweep import Drawn, SweepSpec
from boa.model.job import JobRecord
from boa.model.sweep import Sweep
from boa.scheduler.refusals import NoSuchSweep
from boa.scheduler.state import Draft
from boa.scheduler.terms.stopping import stop_job


def begin(
    draft: Draft, spec: SweepSpec, jobs: Sequence[JobRecord], draws: Sequence[Drawn]
) -> Sweep:
    """Make one sweep of jobs that were just submitted."""
    state = draft.state
    first = jobs[0]
    sweep = Sweep(
        id=f"s{state.next_sweep}",
        name=spec.name or spec.job.name or first.job_class,
        job_class=first.job_class,
        made_at=draft.now,
        jobs=tuple(job.id for job in jobs),
        epochs=spec.job.epochs,
        owner=first.owner,
        team=first.team,
        halving=spec.halving,
    )
    state.next_sweep += 1
    for job, one in zip(jobs, draws, strict=True):
        draft.put_job(replace(draft.jobs[job.id], sweep=sweep.id, drawn=one.values))
    draft.put_sweep(sweep)
    return sweep


def stop(draft: Draft, name: str, known: Sweep | None) -> Sweep:
    """Stop all of its jobs; of one that is over, nothing."""
    sweep = draft.state.sweeps.get(name, known)
    if sweep is None:
        raise NoSuchSweep(name)
    for job in [draft.jobs[job] for job in sweep.jobs if job in draft.jobs]:
        stop_job(draft, job)
    return sweep
