"""Dependencies: jobs that start after others, and end with those that never end as they should.

All pure. A job keeps the others that it waits for (`JobRecord.awaits`); the step in which one of
these ends, in the same transaction, crosses it off or gives the job up. Of many, those that have
ended well may stand there until half of them have, or all.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from boa.errors import InputError
from boa.model.job import After, JobRecord
from boa.scheduler.state import Draft
from boa.scheduler.terms.stopping import stop_job
from boa.scheduler.words.of_terms import waits_for

Outcome: TypeAlias = str
"""How a job or a sweep has ended (`succeeded`, `failed`, `stopped`); empty: it has not yet."""
Known: TypeAlias = Callable[[str], Outcome | None]
"""Outcome of a job or sweep that is not active, by its id; None: there never was one."""
ENDS = {"success": "succeeds", "failure": "fails", "end": "ends"}
_LISTED = 5
FEW = 20
"""Others that a job may wait for and be written anew whenever one of them ends."""


def unknown(name: str) -> Outcome | None:
    """Nothing is known of jobs that are not active."""
    return None


def is_so(after: After, outcome: Outcome) -> bool:
    """Whether that is the end that was waited for; a job that was stopped has not succeeded."""
    return after.on == "end" or (after.on == "success") == (outcome == "succeeded")


def still_awaited(draft: Draft, after: Iterable[After], known: Known) -> tuple[After, ...]:
    """Others that have not ended yet, of those that a new job waits for."""
    found = []
    for number, one in enumerate(after):
        outcome = _outcome(draft, one.job, known)
        if outcome is None:
            expected = "the id of a job or a sweep that there is (boa ps --all lists them)"
            raise InputError(f"after[{number}]", one.job, expected)
        if not outcome:
            found.append(one)
        elif not is_so(one, outcome):
            expected = f"one that {ENDS[one.on]}, or has not ended yet"
            raise InputError(f"after[{number}]", one.job, expected, f"{of(one.job)} {outcome}")
    return tuple(found)


def _goes_on(draft: Draft, name: str) -> bool:
    return name in draft.jobs or name in draft.state.sweeps


def _outcome(draft: Draft, name: str, known: Known) -> Outcome | None:
    if _goes_on(draft, name):
        return ""
    here = draft.changes.jobs.get(name)
    return known(name) if here is None else here.state


def settle(draft: Draft) -> None:
    """Cross off whatever has ended in this draft; whoever ends by that may have others wait."""
    seen: set[str] = set()
    while ended := {name: how for name, how in _ended(draft).items() if name not in seen}:
        seen |= ended.keys()
        for job in [job for job in draft.jobs.values() if job.awaits]:
            _cross_off(draft, job, ended)


def _ended(draft: Draft) -> dict[str, Outcome]:
    found = {job.id: job.state for job in draft.changes.jobs.values() if job.ended}
    return {**found, **draft.sweeps_ended}


def _cross_off(draft: Draft, job: JobRecord, ended: dict[str, Outcome]) -> None:
    if job.stop_requested or not any(one.job in ended for one in job.awaits):
        return
    for one in job.awaits:
        if one.job in ended and not is_so(one, ended[one.job]):
            said = f"{of(one.job)} {ended[one.job]}; this one was to start once it {ENDS[one.on]}"
            stop_job(draft, job, "dependency", said)
            return
    left = tuple(one for one in job.awaits if one.job not in ended and _goes_on(draft, one.job))
    if left and FEW < len(job.awaits) < 2 * len(left):
        return  # thousands that wait for hundreds: each is written a few times, not for every end
    draft.replan = draft.replan or not left
    draft.put_job(replace(job, awaits=left, reason=waits(left) if left else "new"))


def of(name: str) -> str:
    return f"sweep {name}" if name.startswith("s") else f"job {name}"


def waits(after: Iterable[After]) -> str:
    """Why a job has not started yet."""
    names = [of(one.job) for one in after]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return waits_for(", ".join(names[:_LISTED]) + more)
