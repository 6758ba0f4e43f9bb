"""Nodes, money and the plan in force from the command line."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import boa
from boa.cli.live.cost import grouping, moment
from boa.cli.live.service import rebuilt
from boa.cli.parsers import SPANS
from boa.errors import InputError
from boa.formats.plain_yaml import load_yaml
from boa.model.calendar import Calendar, Period
from boa.model.groupings import PLAIN
from boa.policy.boa import within_reach
from boa.scheduler.money import accounts
from boa.scheduler.money.money_state import SetAtRunTime
from boa.server.routes.money import grouped_by
from fakes import NOW, FakeService
from integration.runner import STRICT, WORKLOAD, Boa
from unit.server.routes.test_money import CONTRACT as COST_KEYS
from unit.server.routes.test_money import plan_state


def test_nodes_show_who_uses_them(run: Boa, service: FakeService) -> None:
    assert "no nodes" in run("nodes")
    service.submit()
    service.control.run("1", gpus=3)
    said = run("nodes")
    assert "4×T4" in said
    assert "1 (3)" in said
    assert "3 of 4 GPUs in use, $4.00/h" in said
    assert run.json("nodes")["nodes"][0]["used_gpus"] == 3
    assert " at " not in said.splitlines()[0]


def test_nodes_of_a_cluster_are_named_as_the_cluster_names_them(
    run: Boa, service: FakeService
) -> None:
    service.submit()
    service.control.run("1", gpus=3)
    nodes = service.control.nodes
    nodes[1] = replace(nodes[1], address="gke-t4-7c9f")
    assert "1     gke-t4-7c9f  4×T4" in run("nodes")


def test_cost_json_has_the_keys_of_the_contract(run: Boa, service: FakeService) -> None:
    more = {"provisioning_usd", "max_spend_per_hour", "effective_budget_per_hour", "since"}
    more |= {"allowed_per_hour", "average_since", "unused", "billing"}
    more |= {"forecast_basis", "forecast_over_s", "forecast_pace_per_hour"}
    more |= {"forecast_allowed_per_hour"}
    more |= {"forecast_low_usd", "forecast_high_usd"}
    assert set(run.json("cost")) == COST_KEYS | more
    assert set(run.json("cost", "--by", "day")) == COST_KEYS | more | {"rows"}


def test_cost_is_told_in_words(run: Boa, service: FakeService) -> None:
    service.submit(name="first")
    service.control.run("1", gpus=3)
    said = run("cost")
    assert "$4.00/h over 1 h: 29 % of the budget" in said
    assert "$26.00: jobs $20.00, idle $4.00, booting $2.00" in said
    for by, words in (("day", "2026-09-21"), ("class", "resnet18"), ("job", "first")):
        assert words in run("cost", "--by", by)
    run("cost", "--by", "week", code=2)
    assert "one of day, class, job" in run.err


def test_the_forecast_says_which_pace_it_goes_by(run: Boa, service: FakeService) -> None:
    assert "this month  nothing spent so far, so there is no forecast yet\n" in run("cost")
    assert run.json("cost")["forecast_basis"] == "none"
    service.control.rent(1)
    assert "by its end, at the pace of the last 1 h ($4.00/h)\n" in run("cost")
    node = service.control.nodes[1]
    young = replace(node, billed_from=NOW - 720, ready_at=NOW - 700)
    service.control.nodes[1] = service.control.store.kept_nodes[1] = young
    said = run("cost")
    assert "too soon to say: 12 min of spending so far, and a forecast needs an hour\n" in said
    assert "$4.00/h over 12 min: too soon to compare with the budget\n" in said
    found = run.json("cost")
    assert (found["forecast_basis"], found["forecast_over_s"]) == ("short", 720.0)
    assert found["forecast_month_usd"] is None


@pytest.mark.parametrize(
    ("since", "begin"),
    [
        ("30m", NOW - 1800),
        ("2h", NOW - 7200),
        ("1d", NOW - 86_400),
        ("9999w", 0.0),
        ("2026-09-21", 1_789_948_800.0),
        ("2026-09-21T12:00:00+02:00", 1_789_984_800.0),
    ],
)
def test_cost_since_takes_a_time_ago_or_a_date(since: str, begin: float) -> None:
    assert moment(since, lambda: NOW) == begin


def test_cost_counts_from_there(run: Boa, service: FakeService) -> None:
    assert run.json("cost", "--since", "30m")["since"] == NOW - 1800
    assert "since 30m: jobs" in run("cost", "--since", "30m")


def test_an_average_is_of_no_time_before_anything_was_rented(
    run: Boa, service: FakeService
) -> None:
    service.control.rent(1)
    found = run.json("cost", "--since", "30d")
    assert found["since"] == NOW - 30 * 86_400
    assert found["average_since"] == service.control.money.since
    assert "/h over 2 h" in run("cost", "--since", "30d")
    assert "/h over 30 min" in run("cost", "--since", "30m")


def test_an_average_over_no_time_is_none(run: Boa, service: FakeService) -> None:
    assert "average     nothing spent so far\n" in run("cost")


def test_cost_and_budget_show_have_the_same_average(run: Boa, service: FakeService) -> None:
    service.control.rent(1)
    words = "$4.00/h over 1 h: 29 % of the budget"
    assert f"average     {words}\n" in run("cost")
    assert f"average  {words}\n" in run("budget", "show")


def test_rows_of_no_name_say_whose_they_are(run: Boa, service: FakeService) -> None:
    service.submit()
    service.submit(tags={"project": "zoo"})
    service.control.run("1", gpus=2)
    service.control.run("2", gpus=1)
    rows = run("cost", "--by", "tag:project").partition("\n\n")[2].splitlines()[1:]
    assert {row.split("  ")[0] for row in rows} == {"zoo", "untagged", "idle and booting"}


def test_cost_by_job_shows_ids_and_totals_on_any_terminal(
    run: Boa, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.submit("c" * 200, name="n" * 200)
    service.control.run("1", gpus=3)
    monkeypatch.setenv("COLUMNS", "80")
    head, row, *_ = run("cost", "--by", "job").partition("\n\n")[2].splitlines()
    assert head.split() == [
        *("job", "name", "class", "jobs", "idle", "booting", "total", "GPU-hours")
    ]
    assert row.split()[0] == "1"
    assert row.split()[3:] == ["$2.92", "$0.00", "$0.00", "$2.92", "2.92"]


@pytest.mark.parametrize("since", ["yesterday", "7", "-1d", "1y", ""])
def test_a_time_that_is_none_is_refused(run: Boa, service: FakeService, since: str) -> None:
    run("cost", f"--since={since}", code=2)
    assert "--since" in run.err
    assert "7d" in run.err


def test_the_budget_is_shown_and_set(run: Boa, service: FakeService) -> None:
    assert "$14.00/h" in run("budget", "show")
    said = run("budget", "set", 20, "--max-spend", 40)
    assert "$20.00/h for GPUs that jobs hold, never more than $40.00/h" in said
    assert service.control.money.budget == 20.0
    document = run.json("budget", "set", 7)
    assert (document["budget_per_hour"], document["max_spend_per_hour"]) == (7.0, 40.0)
    assert run.json("budget", "show") == document
    assert run.json("budget", "set", 7, "--max-spend", "none")["max_spend_per_hour"] is None
    document = run.json("budget", "set", "--max-spend", 30)
    assert (document["budget_per_hour"], document["max_spend_per_hour"]) == (7.0, 30.0)
    run("budget", "set", code=2)


def test_the_amount_is_said_to_be_the_weeks_where_a_calendar_holds(
    run: Boa, service: FakeService
) -> None:
    by_day = Period(name="day", budget=20.0, begins=0, ends=720)
    calendar = Calendar(periods=(by_day, Period(name="night", budget=40.0)))
    state = accounts.state(accounts.PeriodAccounts(), calendar, NOW)
    service.control.money = replace(service.control.money, calendar=state, allowed=20.0)
    words = "week $30.00/h on average, which is what `boa budget set` sets"
    for command in (["set", "--max-spend", "90"], ["show"]):
        assert words in " ".join(run("budget", *command).split())


def test_a_budget_that_is_too_small_is_set_with_a_warning_on_stderr(
    run: Boa, service: FakeService
) -> None:
    service.submit()
    service.control.plan = plan_state()
    run("budget", "set", 5000)
    assert run.err == ""
    said = run("budget", "set", 1)
    assert "$1.00/h" in said
    assert run.err.startswith("warning: the budget of $1.00/h is less than the jobs need")
    assert run.err.count("\n") == 1
    found = run.json("budget", "set", 1)
    assert found["needed_per_hour"] == pytest.approx(service.control.plan.solution.cheapest)
    assert run.err == f"warning: {found['warnings'][0]}.\n"
    assert "is less than the jobs need" in run("budget", "show")


def test_limits_that_were_set_at_run_time_are_said_beside_the_figures(
    run: Boa, service: FakeService
) -> None:
    changed = SetAtRunTime(configured=None, at=NOW)
    service.control.money = replace(service.control.money, max_spend=4.0, max_spend_set=changed)
    words = "cap $4.00/h, set at run time on 2026-09-21 14:13 UTC; the configuration says none"
    assert words in run("cost").replace("\n", " ")
    assert words in run("budget", "show").replace("\n", " ")
    assert run.json("cost")["max_spend_set"]["configured_per_hour"] is None
    assert run.json("budget", "show")["max_spend_set"]["at"] == NOW


@pytest.mark.parametrize("cap", ["0", "-3", "lots", "nan", "inf", "None"])
def test_a_bad_cap_is_refused(run: Boa, cap: str) -> None:
    run("budget", "set", 7, f"--max-spend={cap}", code=2)
    assert f"--max-spend: got '{cap}'; expected USD per hour > 0, such as 40, or none" in run.err


@pytest.mark.parametrize("amount", ["0", "-3", "lots", "nan", "inf"])
def test_a_bad_budget_is_refused(run: Boa, amount: str) -> None:
    run("budget", "set", "--", amount, code=2)
    assert f"USD: got '{amount}'" in run.err


def test_the_budget_for_a_jct_is_still_asked_as_before(run: Boa, tmp_path: Path) -> None:
    run("budget", code=2)
    assert run.err == "error: Missing argument 'WORKLOAD'. See 'boa budget --help'.\n"
    run("budget", "settle", "--jct", 60, code=2)
    assert "settle: no such file" in run.err
    run("budget", "--jct", 60, "./set", code=2)
    assert "no such file" in run.err


# The plan in force


def test_the_plan_in_force_is_printed_as_any_plan(
    run: Boa, service: FakeService, tmp_path: Path
) -> None:
    run("plan", "--live", code=1)
    assert "there is no plan yet" in run.err
    service.control.plan = plan = plan_state(too_small=11.5)
    workload = tmp_path / "w.yaml"
    workload.write_text(boa.dump_workload(plan.workload))
    made = json.loads(run("plan", workload, "--budget", 10, "--json"), **STRICT)
    live = run.json("plan", "--live")
    assert {**live, "solve_time_s": 0} == {**made, "solve_time_s": 0}
    assert run.err == "the budget of $14.00/h cannot keep up: it takes $11.50/h to\n"
    service.control.plan = plan_state()
    said = run("plan", "--live").splitlines()
    lines = run("plan", workload, "--budget", 10).splitlines()
    assert said[0] == "budget        $14.00/h, planned with $10.00/h, all of it spent"
    assert lines[0] == "budget        $10.00/h, all of it spent"
    assert [line for line in said[1:] if "solved" not in line] == [
        line for line in lines[1:] if "solved" not in line
    ]


def test_a_service_s_plan_is_in_dollars_where_every_gpu_costs_one(
    run: Boa, service: FakeService
) -> None:
    workload = boa.parse_workload(load_yaml(WORKLOAD.replace("price: 3.0", "price: 1.0")))
    solution = boa.plan(workload, 10.0)
    service.control.plan = replace(plan_state(), solution=solution, workload=workload)
    said = run("plan", "--live")
    assert "planned with $10.00/h" in said
    assert not re.search(r"\d GPUs|GPU-h\b", said)


def test_a_budget_that_cannot_keep_up_is_told_apart_from_what_could(
    run: Boa, service: FakeService
) -> None:
    workload = boa.parse_workload(load_yaml(WORKLOAD))
    solution, needed = within_reach(workload, 0.5)
    assert needed is not None
    service.control.plan = replace(plan_state(too_small=needed), solution=solution)
    service.control.money = replace(service.control.money, budget=0.5, effective=0.25)
    said = run("plan", "--live")
    first = "$0.50/h, planned with $0.25/h, which cannot keep up: this, the cheapest plan, needs"
    assert f"{first} ${needed:.2f}/h" in said
    assert run.err == ""
    for noise in ("<0.01 %", "e-", "shadow price", "left over"):
        assert noise not in said
    assert said.count("its cheapest way") == len(workload.classes)


def test_the_plan_in_force_can_be_drawn_and_kept(
    run: Boa, service: FakeService, tmp_path: Path
) -> None:
    service.control.plan = plan_state()
    picture, kept = tmp_path / "w.svg", tmp_path / "p.json"
    run("plan", "--live", "--plot", picture, "-o", kept)
    assert picture.stat().st_size > 5_000
    assert json.loads(kept.read_text())["average_jct_s"] > 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["x.yaml"], "WORKLOAD"),
        (["--budget", "3"], "--budget"),
        (["--seed", "1"], "--seed"),
        (["--deterministic"], "--deterministic"),
        (["--routing", "class"], "--routing"),
    ],
)
def test_what_a_solver_would_be_told_does_not_go_with_live(
    run: Boa, arguments: list[str], named: str
) -> None:
    run("plan", "--live", *arguments, code=2)
    assert run.err.startswith(f"error: {named} does not go with --live")


def test_a_solution_is_rebuilt_to_the_last_digit(service: FakeService) -> None:
    service.control.plan = plan = plan_state()
    workload, solution = rebuilt(service.get("plan"))
    assert workload == plan.workload
    assert solution.outcome == plan.solution.outcome
    assert solution.gap == plan.solution.gap
    assert solution.cluster == plan.solution.cluster


@pytest.mark.parametrize("by", [*PLAIN, "tag:project"])
def test_command_line_and_service_know_the_same_ways_to_list_money(by: str) -> None:
    assert grouping(by) == by
    assert grouped_by(by).what == by.partition(":")[0]


@pytest.mark.parametrize("by", ["tag", "tag:", "hour", "", "days"])
def test_command_line_and_service_refuse_another_way_in_the_same_words(by: str) -> None:
    said = []
    for check in (grouping, grouped_by):
        with pytest.raises(InputError) as wrong:
            check(by)
        said.append(wrong.value.expected)
    assert (
        said[0]
        == said[1]
        == ("one of day, class, job, team, user, payer or tag:KIND, such as tag:project")
    )


@pytest.mark.parametrize("unit", SPANS)
def test_a_time_ago_may_be_in_any_unit_of_spans(unit: str) -> None:
    assert moment(f"2{unit}", lambda: 1e9) == 1e9 - 2 * SPANS[unit]
