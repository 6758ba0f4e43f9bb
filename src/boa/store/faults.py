"""A store as it was found: its faults by kind, and numbers in few words. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

FaultKind: TypeAlias = Literal[
    "file", "pages", "schema", "row", "missing", "reference", "ledger", "older", "foreign"
]
"""`file`: it cannot be read at all; `pages`: SQLite's own structure; `row`: one that is not as it
was written; `missing`: jobs that were there; `reference`: a row without the one that it belongs to;
`ledger`: rows have less than was added up; `older`: than its data folder; `foreign`: of another
history."""


DROPPED = "dropped_jobs"
"""Key of `meta`: the highest number of a job that was dropped by its age."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    kind: FaultKind
    text: str
    jobs: Sequence[int] = ()
    """Numbers of the jobs that it is about, where it is about any."""


@dataclass(slots=True, kw_only=True)
class Found:
    """A store as it was found."""

    there: bool = True
    """Whether there is one: False where the file is not there, or empty."""
    version: int = 0
    looked_through: bool = False
    """Whether its rows were looked at: not those of an earlier version."""
    faults: list[Fault] = field(default_factory=list)
    jobs: set[int] = field(default_factory=set)
    """Numbers of jobs whose rows are whole."""
    active: int = 0
    nodes: set[int] = field(default_factory=set)
    job: int = 0
    """Highest number of a job, whole or not, of a node and of an event."""
    node: int = 0
    event: int = 0
    opened: int = 0
    commits: int = 0
    openings: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Random name and commits of each opening; the last one's commits are `commits`."""
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def cluster(self) -> str | None:
        name = self.meta.get("cluster")
        return name if isinstance(name, str) else None

    @property
    def lost(self) -> set[int]:
        """Numbers of jobs that were given up knowingly."""
        spans: Sequence[tuple[int, int]] = self.meta.get("lost_jobs", ())
        return {number for first, last in spans for number in range(first, last + 1)}

    @property
    def dropped(self) -> int:
        """Jobs up to this number may have been dropped by their age."""
        number = self.meta.get(DROPPED)
        return number if isinstance(number, int) else 0

    def tell(self, kind: FaultKind, text: str, jobs: Collection[int] = ()) -> None:
        self.faults.append(Fault(kind=kind, text=text, jobs=sorted(jobs)))


def listed(numbers: Collection[int], most: int = 6) -> str:
    """Numbers in few words: 3, 5–9, 12."""
    spans = ranges(numbers)
    said = [f"{first}" if first == last else f"{first}–{last}" for first, last in spans[:most]]
    more = ", …" if len(spans) > most else ""
    return f"{', '.join(said)}{more}" + (f" ({len(numbers)})" if len(numbers) > most else "")


def ranges(numbers: Collection[int]) -> list[tuple[int, int]]:
    """First and last of each stretch without a gap."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
