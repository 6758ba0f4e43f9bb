"""However a month went, its statement adds up to the bill to the cent."""

from hypothesis import given
from hypothesis import strategies as st

from boa.model.records import Hold
from boa.scheduler.money.cents import cents, shared_out
from boa.scheduler.money.costs import costs
from boa.scheduler.money.holders import Of
from boa.scheduler.money.ledger import bill
from boa.scheduler.money.statement import Amounts, Whose, statement
from property.test_ledger import History, histories, moments
from reading import held


def whose(of: Of) -> Whose:
    job, job_class = of
    return Whose("lab", job[-1], "vision" if job < "2" else "language", job_class)


@given(
    total=st.integers(0, 10**9),
    weights=st.lists(st.floats(0, 1e12, allow_subnormal=False), min_size=1, max_size=30),
)
def test_shares_add_up_and_none_is_a_cent_off(total: int, weights: list[float]) -> None:
    whole = sum(weights)
    if whole <= 0:
        total = 0
    found = shared_out(total, weights)
    assert sum(found) == total
    for share, weight in zip(found, weights, strict=True):
        exact = total * (weight / whole) if whole else 0.0
        assert share >= 0
        assert abs(share - exact) <= 1 + 1e-6 * exact


@given(history=histories(), since=moments, until=moments)
def test_lines_and_days_add_up_to_the_bill_to_the_cent(
    history: History, since: float, until: float
) -> None:
    nodes, holds = history
    found = statement(nodes, held(holds), since, until, whose)
    exact = bill(nodes, holds, since, until)
    assert found.bill.total == cents(exact.total)
    lines = sum(found.lines.values(), Amounts())
    days = sum(found.days.values(), Amounts())
    for amounts in (lines, days):
        assert (amounts.held, amounts.idle, amounts.booting) == (
            found.bill.held,
            found.bill.idle,
            found.bill.booting,
        )
    for name in range(4):
        by_name = found.added_up(lambda one, name=name: one[name])  # type: ignore[misc]
        assert sum(one.total for one in by_name.values()) == found.bill.total
        assert sum(one.jobs for one in by_name.values()) == found.bill.jobs
    for exactly, rounded in (
        (exact.jobs, found.bill.held),
        (exact.idle, found.bill.idle),
        (exact.provisioning, found.bill.booting),
    ):
        assert abs(100 * exactly - rounded) <= 1.5
    _, rows = costs(nodes, held(holds), since, until, "class")
    jobs = sum(row["gpu_hours"] for row in rows if row["class"] is not None)
    assert abs(found.bill.gpu_hours - jobs) <= 1e-6


@given(history=histories(), since=moments, until=moments)
def test_whoever_held_twice_as_much_pays_twice_the_idle_gpus(
    history: History, since: float, until: float
) -> None:
    nodes, holds = history
    found = statement(nodes, held(holds), since, until, whose)
    if found.bill.held == 0:
        return
    for amounts in found.lines.values():
        share = amounts.held / found.bill.held
        spread = 1 + (found.bill.idle + found.bill.booting) / found.bill.held
        assert abs(amounts.idle - share * found.bill.idle) <= 1 + spread
        assert abs(amounts.booting - share * found.bill.booting) <= 1 + spread


@given(history=histories(), since=moments, until=moments)
def test_a_line_has_what_its_jobs_held_to_a_cent_or_two(
    history: History, since: float, until: float
) -> None:
    nodes, holds = history
    found = statement(nodes, held(holds), since, until, whose)
    lines: dict[Whose, list[Hold]] = {}
    for hold in holds:
        lines.setdefault(whose((hold.job, hold.stream)), []).append(hold)
    exact = {name: 100 * bill(nodes, of, since, until).jobs for name, of in lines.items()}
    if abs(sum(exact.values()) - found.bill.held) > 1:
        return  # holds that outlast their nodes: jobs get no more than could be used
    for name, amount in exact.items():
        assert abs(found.lines.get(name, Amounts()).held - amount) <= 2
