"""Audit, sweeps and estimates: what they show, and that each has an address that can be kept."""

import re

from playwright.sync_api import Page, expect

from browser.conftest import PHONE, Window, expect_to_fit
from browser.lab import Lab


def test_the_audit_log_is_filtered_keeps_that_in_its_address_and_leads_to_the_job(
    window: Window, lab: Lab
) -> None:
    job = lab.submit_talker("audited")["id"]
    lab.client.stop(job)
    page = window.open(f"{lab.url}/#/audit?about=jobs&search=stop")
    lines = page.get_by_role("list", name="Audit log").get_by_role("listitem")
    mine = lines.filter(has=page.get_by_role("link", name=job, exact=True))
    expect(mine.first).to_be_visible()
    expect(lines.filter(has_text=re.compile(r"\bsubmit\b"))).to_have_count(0)
    page.get_by_role("button", name="Money", exact=True).click()
    expect(page).to_have_url(re.compile(r"about=jobs,money&search=stop$"))
    mine.first.get_by_role("link", name=job, exact=True).click()
    expect(page.get_by_role("heading", name="audited", level=1)).to_be_visible()
    page.go_back()
    expect(page).to_have_url(re.compile(r"#/audit\?about=jobs,money&search=stop$"))
    expect(mine.first).to_be_visible()


def test_a_sweep_is_one_line_has_a_page_and_is_found_by_the_search(
    window: Window, lab: Lab
) -> None:
    job = {"class": "talker", "run": ["sleep", "600"], "launcher": "single", "gpus": {"max": 1}}
    values = {"lr": [0.1, 0.2, 0.3]}
    sweep = lab.client.submit_sweep(job, values, name="rates")["id"]
    page = window.open(f"{lab.url}/#/jobs/{sweep}")
    expect(page.get_by_role("heading", name="rates", level=1)).to_be_visible()
    for value in values["lr"]:
        expect(page.get_by_role("cell", name=f"lr={value}")).to_be_visible()
    page.goto(f"{lab.url}/#/jobs?ended=1")
    line = page.get_by_role("row").filter(has_text="rates")
    expect(line).to_contain_text(re.compile("3 of 3 active|3 jobs"))
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name=re.compile("^Search jobs")).fill(f"sweep {sweep}")
    expect(page.get_by_role("option").first).to_contain_text("rates")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#/jobs/{sweep}$"))
    lab.client.stop_sweep(sweep)


def test_a_class_estimates_a_job_that_nobody_has_submitted(window: Window, lab: Lab) -> None:
    page = window.open(f"{lab.url}/#/classes/bert", viewport=PHONE, phone=True)
    page.get_by_role("button", name="Estimate", exact=True).tap()
    found = page.locator(".stat").filter(has_text="Known from")
    expect(found).to_contain_text(re.compile("a profile|reports so far"))
    expect(page.get_by_role("columnheader", name="Epochs", exact=True)).to_be_visible()
    expect_to_fit(page, "an estimate")


def test_the_budget_and_the_cluster_say_why_money_is_spent(page: Page, lab: Lab) -> None:
    card = page.locator(".card").filter(has_text="What was decided about money")
    expect(card.get_by_role("listitem").filter(has_text="plan").first).to_be_visible()
    card.get_by_role("link", name="All of it").click()
    expect(page).to_have_url(re.compile(r"#/events\?group=money$"))
    page.go_back()
    expect(card).to_be_visible()
    page.goto(f"{lab.url}/#/cluster")
    if any(node["used_gpus"] < node["gpus"] for node in lab.client.nodes()):
        unused = page.get_by_role("list", name="Paid for now, and used by no job")
        expect(unused.get_by_role("listitem").first).to_contain_text(re.compile(r"\$[\d.]+/h for"))


def test_a_month_has_its_bill_its_files_and_an_address(window: Window, lab: Lab) -> None:
    month = lab.client.statement()["month"]
    page = window.open(f"{lab.url}/#/budget")
    page.get_by_role("link", name="This month, by user and tag").click()
    days = page.get_by_role("list", name="Spend by day (UTC)").get_by_role("listitem")
    expect(days.filter(has_text="$").first).to_be_attached()
    expect(page.get_by_role("rowheader", name="bert", exact=True)).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV", exact=True).click()
    assert saved.value.suggested_filename == f"boa-{month}.csv"
    assert "bert" in saved.value.path().read_text("utf-8")
    page.goto(f"{lab.url}/#/month/2020-02")
    expect(page.get_by_role("heading", name="February 2020", level=1)).to_be_visible()
    expect(page.get_by_text("Nothing was spent.")).to_be_visible()
    expect(page.get_by_text("Nothing can be said yet: 0 jobs")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{lab.url}/#/month/{month}")
    expect(days.first).to_be_attached()
    expect_to_fit(page, "a month")


def test_another_priority_says_what_it_means_before_it_is_chosen_and_then_shows(
    window: Window, lab: Lab
) -> None:
    job = lab.submit_talker("hurries")["id"]
    page = window.open(f"{lab.url}/#/jobs/{job}")
    page.get_by_role("button", name="Change", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Priority").select_option("background")
    expect(dialog).to_contain_text("Nothing is rented for it")
    dialog.get_by_label("Priority").select_option("urgent")
    expect(dialog).to_contain_text("others have less")
    dialog.get_by_role("button", name="Change it").click()
    expect(page.locator(".badge.urgent")).to_be_visible()
    page.goto(f"{lab.url}/#/jobs")
    row = page.get_by_role("row").filter(has_text="hurries")
    expect(row.locator(".badge.urgent")).to_be_visible()
    assert lab.client.job(job)["priority"] == "urgent"
    lab.client.stop(job)
