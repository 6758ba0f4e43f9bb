"""Ways to list money: by what the ledger has itself, or by what is known of jobs. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from boa.model.budgets import WHOLE, Budget
from boa.model.cluster import JobId
from boa.model.groupings import What
from boa.model.held import Held
from boa.model.job import JobRecord
from boa.model.records import NodeRecord
from boa.scheduler.money.costs import By, Rows, costs
from boa.scheduler.money.holders import Of, added_up, by_job
from boa.scheduler.money.ledger import Bill
from boa.units import Seconds


@dataclass(frozen=True, slots=True)
class Grouped:
    what: What
    tag: str = ""
    """Kind of the tag, for `tag`."""

    @property
    def of_ledger(self) -> By:
        return cast(By, self.what)


def payer_of(sharing: Budget | None) -> Callable[[str], str]:
    """By stream: the innermost part of the budget that pays for it."""
    return (lambda stream: WHOLE) if sharing is None else sharing.who_pays()


def grouped(
    nodes: Sequence[NodeRecord],
    held: Held,
    since: Seconds,
    until: Seconds,
    by: Grouped,
    records: Mapping[JobId, JobRecord],
    sharing: Budget | None,
) -> tuple[Bill, Rows]:
    """The bill, and a row for each team, user, payer or value of a tag; as in `costs`, what no job
    held is the last row. `records`: of jobs that are still kept; nothing is known of others."""
    charged, rows = costs(nodes, held, since, until, "class")
    label = _label(by, records, sharing)
    found: Rows = [
        {
            by.what: name,
            "total_usd": holding.usd,
            "jobs_usd": holding.usd,
            "idle_usd": 0.0,
            "provisioning_usd": 0.0,
            "gpu_hours": holding.gpu_hours,
        }
        for name, holding in added_up(by_job(nodes, held, since, until), label).items()
    ]
    apart: Rows = [
        {by.what: None, **{name: value for name, value in row.items() if name != "class"}}
        for row in rows
        if row["class"] is None
    ]
    return charged, found + apart


def _label(
    by: Grouped, records: Mapping[JobId, JobRecord], sharing: Budget | None
) -> Callable[[Of], str]:
    if by.what == "payer":
        pays = payer_of(sharing)
        return lambda of: pays(of[1])

    def known(of: Of) -> str:
        record = records.get(of[0])
        if record is None:
            return ""
        if by.what == "tag":
            return record.spec.tags.get(by.tag, "")
        return record.team if by.what == "team" else record.owner

    return known
