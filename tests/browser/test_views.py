"""Cluster, classes and events: what is shown there is what the service says, and follows it.

Nodes come and go in test_bill.py."""

import re

from playwright.sync_api import Page, expect

from boa.api.answers import Node
from browser.conftest import Window
from browser.lab import Lab, until


def nodes_of(lab: Lab, job: str) -> list[Node]:
    return [node for node in lab.client.nodes() if job in [each["job"] for each in node["held"]]]


def test_the_cluster_shows_every_node_and_a_cell_opens_its_job(page: Page, lab: Lab) -> None:
    page.get_by_role("link", name="Cluster", exact=True).click()
    for gpu in ("T4", "A100"):
        expect(page.get_by_role("figure", name=f"{gpu} nodes")).to_be_visible()
    job = lab.client.jobs(search="bert-1")[0]["id"]  # others are rescaled more often
    until("it is on a node", lambda: nodes_of(lab, job))
    node = nodes_of(lab, job)[0]
    line = (
        page.get_by_role("table", name="Nodes")
        .get_by_role("row")
        .filter(has=page.get_by_role("cell", name=str(node["id"]), exact=True))
    )
    expect(line.first).to_contain_text(node["gpu_type"])
    cells = page.get_by_role("figure", name="A100 nodes").get_by_role("img")
    cells.focus()

    def opened_by_the_next() -> bool:
        """A cell that is idle at the moment opens nothing."""
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        return re.search(r"#/jobs/\d+$", page.evaluate("location.hash")) is not None

    until("a cell opens its job", opened_by_the_next)


def test_usage_over_time_is_drawn_against_what_was_wanted(page: Page) -> None:
    page.get_by_role("link", name="Cluster", exact=True).click()
    for gpu in ("T4", "A100"):
        drawn = page.get_by_role("figure", name=f"{gpu} GPUs: rented, used, wanted")
        expect(drawn.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"wanted \d"))
        expect(drawn.locator("svg path").first).to_be_attached()


def test_a_class_says_what_was_learned_and_why_it_has_its_width(page: Page) -> None:
    page.get_by_role("link", name="Classes", exact=True).click()
    table = page.get_by_role("table", name="Classes")
    for name in ("resnet18", "bert", "deepspeech2"):
        expect(table.get_by_role("row").filter(has_text=name)).to_be_visible()
    table.get_by_role("link", name="bert").click()
    expect(page.get_by_role("heading", name="bert", exact=True)).to_be_visible()
    expect(page.get_by_role("figure", name=re.compile("A100")).first).to_be_visible()
    expect(page.get_by_role("heading", name="Why this many GPUs")).to_be_visible()
    expect(page.get_by_text(re.compile("One more dollar saves"))).to_be_visible()
    expect(page.get_by_role("figure", name=re.compile("what a dollar saves")).first).to_be_visible()


def test_a_class_that_nobody_knows_is_told(window: Window, lab: Lab) -> None:
    window.expects("status of 404")
    page = window.open(f"{lab.url}/#/classes/nobody")
    expect(page.get_by_text("No job of a class “nobody” was ever submitted")).to_be_visible()


def test_events_come_by_themselves_in_plain_words(page: Page, lab: Lab) -> None:
    page.get_by_role("link", name="Events", exact=True).click()
    events = page.get_by_role("listitem")
    expect(events.filter(has_text="→").first).to_be_visible()
    job = lab.submit_talker("told-of")["id"]
    mine = events.filter(has=page.get_by_role("link", name=f"job {job}", exact=True))
    expect(mine.first).to_be_visible()
    lab.client.stop(job)
    expect(mine.filter(has_text="stop").first).to_be_visible()
    page.get_by_label("Search events").fill(f"job {job}")
    expect(events.filter(has_text="resnet18-1")).to_have_count(0)
    expect(mine.first).to_be_visible()
