"""A month's statement: the bill to the cent, and whose it is, line by line. Pure.

Every line is of jobs with the same payer, user, team and class. What jobs held is theirs. What
nobody held, idle GPUs and nodes that boot or go, is shared out among the lines in proportion to
what they held in the same month (`RULE`), and is shown apart on each. All of it is in whole cents:
lines add up to the bill, column by column, and so do days.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from boa.model.held import Held
from boa.model.records import NodeRecord
from boa.scheduler.money.cents import cents, shared_out
from boa.scheduler.money.costs import costs
from boa.scheduler.money.holders import Holding, Of, added_up, by_job
from boa.scheduler.money.ledger import Bill
from boa.units import Seconds

RULE = (
    "Idle GPUs and nodes that boot or go are shared out in proportion to the dollars that jobs "
    "held in the same month, and shown apart. Amounts add up to the bill in whole cents; those "
    "below ten cents may be shown with more digits."
)


class Whose(NamedTuple):
    """Whose a job is; None: nobody's that is known."""

    payer: str | None
    user: str | None
    team: str | None
    job_class: str | None


NOBODY = Whose(None, None, None, None)


class Exact(NamedTuple):
    """USD before they were rounded to cents."""

    held: float = 0.0
    idle: float = 0.0
    booting: float = 0.0


NO_USD = Exact()


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """Whole cents, and what they bought."""

    held: int = 0
    idle: int = 0
    booting: int = 0
    """Cents of nodes that boot, and of those given back and still charged for."""
    gpu_hours: float = 0.0
    """Those that jobs held."""
    jobs: int = 0
    exact: Exact = NO_USD

    @property
    def total(self) -> int:
        return self.held + self.idle + self.booting

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(
            held=self.held + other.held,
            idle=self.idle + other.idle,
            booting=self.booting + other.booting,
            gpu_hours=self.gpu_hours + other.gpu_hours,
            jobs=self.jobs + other.jobs,
            exact=Exact(*map(sum, zip(self.exact, other.exact, strict=True))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    since: Seconds
    until: Seconds
    bill: Amounts
    lines: Mapping[Whose, Amounts]
    """The dearest first."""
    days: Mapping[str, Amounts]
    """By UTC day, YYYY-MM-DD; days on which nothing was charged are left out. Their GPU-hours are
    all that were rented, and nobody counts their jobs."""

    def added_up(self, name: Callable[[Whose], str | None]) -> dict[str | None, Amounts]:
        """Lines of the same name as one; the dearest first."""
        found: dict[str | None, Amounts] = {}
        for whose, amounts in self.lines.items():
            named = name(whose)
            found[named] = found.get(named, Amounts()) + amounts
        return dict(sorted(found.items(), key=lambda one: -one[1].total))


def statement(
    nodes: Sequence[NodeRecord],
    held: Held,
    since: Seconds,
    until: Seconds,
    whose: Callable[[Of], Whose],
) -> Statement:
    """Bill and lines of the time between two moments."""
    exact, rows = costs(nodes, held, since, until, "day")
    holdings = added_up(by_job(nodes, held, since, until), whose)
    lines, bill = _lines(exact, holdings)
    return Statement(since=since, until=until, bill=bill, lines=lines, days=_days(bill, rows))


def _in_cents(exact: Bill) -> tuple[int, int, int]:
    """Held, idle, booting: they add up to the total in cents."""
    parts = (exact.jobs, exact.idle, exact.provisioning)
    held, idle, booting = shared_out(cents(exact.total) if sum(parts) > 0 else 0, parts)
    return held, idle, booting


def _lines(exact: Bill, holdings: Mapping[Whose, Holding]) -> tuple[dict[Whose, Amounts], Amounts]:
    held, idle, booting = _in_cents(exact)
    weights = [holding.usd for holding in holdings.values()]
    all_held, usd = sum(weights), Exact(exact.jobs, exact.idle, exact.provisioning)
    if all_held <= 0:
        nobodys = Amounts(held=held, idle=idle, booting=booting, exact=usd)
        return ({NOBODY: nobodys} if nobodys.total else {}), nobodys
    columns = (shared_out(column, weights) for column in (held, idle, booting))
    lines = {
        whose: Amounts(
            held=of_jobs,
            idle=unused,
            booting=boots,
            gpu_hours=holding.gpu_hours,
            jobs=holding.jobs,
            exact=Exact(*(holding.usd / all_held * whole for whole in usd)),
        )
        for (whose, holding), of_jobs, unused, boots in zip(holdings.items(), *columns, strict=True)
    }
    return lines, sum(lines.values(), Amounts())


def _days(bill: Amounts, rows: Sequence[Mapping[str, float]]) -> dict[str, Amounts]:
    names = ("jobs_usd", "idle_usd", "provisioning_usd")
    weights = [[row[name] for row in rows] for name in names]
    columns = [
        shared_out(total if sum(of_days) > 0 else 0, of_days)
        for total, of_days in zip((bill.held, bill.idle, bill.booting), weights, strict=True)
    ]
    return {
        str(row["day"]): Amounts(
            held=held,
            idle=idle,
            booting=booting,
            gpu_hours=row["gpu_hours"],
            exact=Exact(*(row[name] for name in names)),
        )
        for row, held, idle, booting in zip(rows, *columns, strict=True)
    }
