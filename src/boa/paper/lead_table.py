"""Policies by rows and loads by columns, as a table of words."""

from collections.abc import Sequence

from boa.paper.figures import title_of
from boa.paper.leads import Lead
from boa.paper.study import Table


def lead_table(title: str, table: Sequence[Lead]) -> Table:
    loads = sorted({lead.load for lead in table})
    known = {(lead.policy, lead.load): lead for lead in table}
    rows = []
    for policy in dict.fromkeys(lead.policy for lead in table):
        cells = [_cell(known.get((policy, load)), policy == "boa") for load in loads]
        rows.append([title_of(policy), *cells])
    heads = ["", *(f"{load:g} × the cheapest" for load in loads)]
    what = "BOA: JCT over the bound; others: JCT (P95) over BOA's"
    return Table(f"{title}. {what}", heads, rows)


def _cell(lead: Lead | None, own: bool) -> str:
    if lead is None:
        return "–"
    if own:
        return lead.over_bound.text("")
    if lead.jct is None or lead.p95 is None:
        return "–"
    return f"{lead.jct.text('')} ({lead.p95.value:.2f})"
