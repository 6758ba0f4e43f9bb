"""A store against its data folder's memory: whether it is as far as it was known to be.

Pure. Every opening has a random name of its own, so that a copy that went its own way is known too.
"""

from collections.abc import Collection

from boa.store.faults import Fault, Found, listed
from boa.store.memory import Mark


def compare(found: Found, mark: Mark | None, seen: Collection[int]) -> list[Fault]:
    """`seen`: numbers of jobs that the folder has runs or checkpoints of."""
    highest = max([mark.job if mark else 0, *seen])
    damaged = {number for fault in found.faults for number in fault.jobs}
    told = set(range(found.job + 1, highest + 1)) - damaged - found.lost
    if not found.there:
        if mark is None and not seen:
            return []
        what = "there was a store here, and it is gone or empty"
        return [_fault("older", what, told)]
    faults = [] if mark is None else _by_mark(found, mark, told)
    if told and not faults:
        faults.append(_fault("older", "the store is older than its data folder", told))
    return faults


def _by_mark(found: Found, mark: Mark, told: Collection[int]) -> list[Fault]:
    if found.opened < mark.opened or (
        found.opened == mark.opened and found.commits < mark.commits and _same(found, mark)
    ):
        behind = (
            f"{mark.commits - found.commits} commits behind"
            if found.opened == mark.opened
            else f"opened {found.opened} times instead of {mark.opened}"
        )
        return [_fault("older", f"the store is older than its data folder ({behind})", told)]
    if not found.openings:  # brought up to date meanwhile by nobody: it is an old copy
        return [_fault("older", "the store is of an older version than its data folder", told)]
    if not _same(found, mark) or _commits(found, mark) < mark.commits:
        what = "the store is another one than that of its data folder, or went its own way"
        return [_fault("foreign", what, told)]
    return []


def _same(found: Found, mark: Mark) -> bool:
    return found.openings.get(mark.opened, ("", 0))[0] == mark.nonce


def _commits(found: Found, mark: Mark) -> int:
    """Commits of the opening that the mark is of. Who takes the store over without a name of his
    own does not write them down: then they are believed."""
    if found.opened == mark.opened:
        return found.commits
    if found.opened not in found.openings:
        return mark.commits
    return found.openings.get(mark.opened, ("", 0))[1]


def _fault(kind: str, what: str, jobs: Collection[int]) -> Fault:
    named = f"; acknowledged jobs that are not in it: {listed(jobs)}" if jobs else ""
    return Fault(
        kind="older" if kind == "older" else "foreign", text=what + named, jobs=sorted(jobs)
    )
