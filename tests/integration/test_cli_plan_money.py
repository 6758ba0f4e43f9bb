"""`boa plan --budgets` and `--calendar`: budgets of teams, weeks of cheap hours."""

from pathlib import Path

import pytest

from integration.runner import Boa


def test_teams_that_share_a_budget_get_their_shares(
    run: Boa, workload: str, tmp_path: Path
) -> None:
    teams = tmp_path / "teams.yaml"
    teams.write_text(
        "{name: lab, budget_per_hour: 10, parts: {one: {budget_per_hour: 4, classes: [small]}, "
        "other: {budget_per_hour: 4}}}"
    )
    plan = run.json("plan", workload, "--budgets", str(teams))
    found = {budget["name"]: budget for budget in plan["budgets"]}
    assert list(found) == ["lab", "one", "other"]
    assert plan["gap"] == pytest.approx(0, abs=1e-9)
    assert found["one"]["spend_per_hour"] >= min(4, found["one"]["wanted_per_hour"]) * (1 - 1e-9)
    assert found["lab"]["spend_per_hour"] <= 10 * (1 + 1e-9)
    said = run("plan", workload, "--budgets", str(teams))
    assert "guaranteed" in said
    assert "no jobs" in said, "nobody's classes are the other team's"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--budget", "10"), "--budget does not go with --budgets"),
        (("--deterministic",), "--deterministic does not go with --budgets"),
        (("--solver", "glue"), "--solver glue does not go with --budgets"),
        (("--billing", "node", "--boot-s", "60"), "--boot-s does not go with --budgets"),
    ],
)
def test_what_does_not_go_with_shared_budgets_is_refused(
    run: Boa, workload: str, tmp_path: Path, flags: tuple[str, ...], said: str
) -> None:
    teams = tmp_path / "teams.yaml"
    teams.write_text("{budget_per_hour: 10, parts: {one: {classes: [small]}}}")
    run("plan", workload, "--budgets", str(teams), *flags, code=2)
    assert said in run.err


def test_a_team_that_pays_for_an_unknown_class_is_an_error_that_names_it(
    run: Boa, workload: str, tmp_path: Path
) -> None:
    teams = tmp_path / "teams.yaml"
    teams.write_text("{budget_per_hour: 10, parts: {one: {classes: [smal]}}}")
    run("plan", workload, "--budgets", str(teams), code=2)
    assert "one: classes: got 'smal'; expected a class of" in run.err
    assert "small, large" in run.err


def test_a_ceiling_below_what_a_team_needs_exits_with_3_and_names_the_team(
    run: Boa, workload: str, tmp_path: Path
) -> None:
    teams = tmp_path / "teams.yaml"
    teams.write_text("{budget_per_hour: 10, parts: {one: {max_per_hour: 1e-6, classes: [small]}}}")
    run("plan", workload, "--budgets", str(teams), code=3)
    assert run.err.startswith("error: one: a limit (max_per_hour) of 1e-06 per hour cannot keep up")


def test_a_week_is_planned_with_work_that_waits_for_cheap_hours(
    run: Boa, workload: str, tmp_path: Path
) -> None:
    week = tmp_path / "week.yaml"
    week.write_text(
        "periods: [{name: dear, hours: 08:00-08:30, budget_per_hour: 10, price_factor: 50}, "
        "{name: cheap, budget_per_hour: 12}]"
    )
    plan = run.json("plan", workload, "--calendar", str(week))
    assert [period["name"] for period in plan["periods"]] == ["dear", "cheap"]
    assert plan["gap"] == pytest.approx(0, abs=1e-6)
    assert {one["came"] for one in plan["waiting"]} == {"dear"}
    for period in plan["periods"]:
        assert period["spend_per_hour"] <= period["budget_per_hour"] * (1 + 1e-6)
    assert "waits for cheap" in run("plan", workload, "--calendar", str(week))
    run("plan", workload, "--calendar", str(week), "--budget", 10, code=2)
    assert "--budget does not go with --calendar" in run.err


def test_prices_of_an_unknown_gpu_type_are_an_error_that_names_it(
    run: Boa, workload: str, tmp_path: Path
) -> None:
    week = tmp_path / "week.yaml"
    week.write_text("periods: [{name: all, budget_per_hour: 10, prices: {H100: 2}}]")
    run("plan", workload, "--calendar", str(week), code=2)
    assert "all: prices: got 'H100'; expected a GPU type of" in run.err
