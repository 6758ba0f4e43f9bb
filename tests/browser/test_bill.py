"""The bill, as services count it unless told otherwise: whole nodes, and why each of them is there.

More money rents nodes and widens jobs; how wide any one of them is meanwhile, nobody has planned.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.conftest import Window
from browser.lab import BUDGET, CAP, STEADY, Lab, until

PLENTY = 200.0
"""USD per hour: more than the fastest plan of these classes takes."""


@pytest.fixture(autouse=True)
def as_before(lab: Lab) -> Iterator[None]:
    """The budget is what it was, whatever a test has done to it."""
    yield
    lab.client.set_budget(BUDGET, CAP)


@pytest.fixture
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab without jobs, where nobody else makes use of a node that one has left."""
    with Lab(tmp_path_factory.mktemp("quiet"), **STEADY).running() as lab:
        yield lab


def stat(page: Page, label: str) -> Locator:
    found = page.locator(".stat").filter(has=page.get_by_text(label, exact=True))
    return found.locator(".stat-value")


def number(shown: Locator) -> float:
    return float(re.sub(r"[^\d.]", "", shown.inner_text()))


def charged(lab: Lab) -> float:
    """USD per hour of whole nodes, whoever holds their GPUs."""
    return sum(
        node["price_per_hour"]
        for node in lab.client.nodes()
        if node["billed_from"] is not None and node["state"] != "gone"
    )


def width_of(lab: Lab, name: str) -> int:
    return lab.client.jobs(search=name)[0]["width"] or 0


def test_what_is_spent_now_is_the_price_of_whole_nodes(page: Page, lab: Lab) -> None:
    shown = stat(page, "Spend now")
    until("it is what nodes cost", lambda: number(shown) == pytest.approx(charged(lab), abs=0.01))
    page.get_by_role("link", name="Cluster", exact=True).click()
    shown = stat(page, "Cost now")
    until("here too", lambda: number(shown) == pytest.approx(charged(lab), abs=0.01))


def test_every_node_says_in_money_why_it_is_kept(page: Page, lab: Lab) -> None:
    page.get_by_role("link", name="Cluster", exact=True).click()
    rows = page.get_by_role("table", name="Nodes").get_by_role("row")
    kept = rows.filter(has_text=re.compile(r"kept: worth \$[\d.,]+/h to jobs, for \$[\d.]+/h"))
    for gpu in ("T4", "A100"):
        expect(kept.filter(has_text=gpu).first).to_be_visible()


def test_applied_money_rents_nodes_and_widens_jobs_and_all_of_it_is_told(
    page: Page, lab: Lab
) -> None:
    width = width_of(lab, "bert-1")
    page.get_by_label("Budget in USD per hour", exact=True).fill(f"{PLENTY:g}")
    page.get_by_role("button", name=f"Set the budget to ${PLENTY:.2f}/h").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=f"Set it to ${PLENTY:.2f}/h").click()
    expect(dialog).to_have_count(0)
    until("it is wider", lambda: width_of(lab, "bert-1") > width)
    page.get_by_role("link", name="Jobs", exact=True).click()
    row = page.get_by_role("row").filter(has_text="bert-1")
    expect(row).not_to_contain_text(f"{width}×A100")
    expect(row).to_contain_text(re.compile(r"running.*\d×A100"))
    page.get_by_role("link", name="Events", exact=True).click()
    events = page.get_by_role("listitem")
    for told in (
        rf"the budget is \${PLENTY:g}",
        r"renting node \d+: 4×A100 .* of it save jobs ",
        rf"bert-1.* → \d+×A100: {width} before; widened",
    ):
        expect(events.filter(has_text=re.compile(told)).first).to_be_visible()


def test_a_node_that_is_rented_and_given_back_comes_and_goes(window: Window, quiet: Lab) -> None:
    page = window.open(f"{quiet.url}/#/cluster")
    expect(page.get_by_text("Nothing is rented now")).to_be_visible()
    job = quiet.submit("bert", "needs-nodes")["id"]
    until("it has nodes", lambda: any(node["held"] for node in quiet.client.nodes()))
    node = next(node["id"] for node in quiet.client.nodes() if node["held"])
    rows = page.get_by_role("table", name="Nodes").get_by_role("row")
    mine = rows.filter(has=page.get_by_role("cell", name=str(node), exact=True))
    expect(mine.first).to_be_visible()
    expect(stat(page, "GPUs rented")).to_have_text(re.compile("[1-9]"))
    quiet.client.stop(job)
    expect(page.get_by_text("Nothing is rented now")).to_be_visible()
    page.get_by_role("link", name="Events", exact=True).click()
    told = re.compile(rf"giving node {node} back")
    expect(page.get_by_role("listitem").filter(has_text=told)).to_be_visible()
