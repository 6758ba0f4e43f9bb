"""A service that is killed is said to be gone; one that comes back is found again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.conftest import Window
from browser.lab import STEADY, Lab

BROKEN = r"ERR_(CONNECTION_(REFUSED|RESET|CLOSED)|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE)"


# The tests ask for it before the window: that is closed before the service goes for good.
@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("lab"), **STEADY).running() as lab:
        lab.submit("bert", "goes-on")
        yield lab


def test_a_killed_service_is_gone_and_its_return_is_seen(lab: Lab, window: Window) -> None:
    window.expects(BROKEN)
    page = window.open(f"{lab.url}/#/jobs")
    row = page.get_by_role("row").filter(has_text="goes-on")
    expect(row).to_contain_text("running")
    lab.service.kill()
    gone = page.get_by_role("alert")
    expect(gone).to_contain_text("does not answer")
    expect(gone).to_contain_text("last that it said")
    expect(page.get_by_role("status").filter(has_text="no connection")).to_be_visible()
    expect(row).to_contain_text("running")
    lab.service.start()
    expect(gone).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    expect(row).to_contain_text("running")
    lab.submit("resnet18", "came-later")
    expect(page.get_by_role("row").filter(has_text="came-later")).to_be_visible()


def test_every_view_keeps_what_it_had_and_mends_itself(lab: Lab, window: Window) -> None:
    window.expects(BROKEN)
    page = window.open(lab.url)
    spend = page.get_by_text("Spend now")
    expect(spend).to_be_visible()
    lab.service.kill()
    expect(page.get_by_text("Trying again")).to_be_visible()
    expect(spend).to_be_visible()
    for view in ("Cluster", "Classes", "What-if", "Events", "Jobs"):
        page.get_by_role("link", name=view, exact=True).click()
        expect(page.get_by_text("Trying again")).to_be_visible()
        expect(page.get_by_role("main")).not_to_be_empty()
    page.get_by_role("link", name="Budget", exact=True).click()
    lab.service.start()
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    expect(page.get_by_role("figure", name="Average JCT by budget")).to_be_visible()
    expect(page.get_by_role("figure", name="Spend per hour")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
