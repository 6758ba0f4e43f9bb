"""`boa simulate --calendar`: budgets that change by the hour."""

from pathlib import Path

from integration.runner import Boa, same


def test_a_calendar_says_the_budget_where_nobody_else_does(
    run: Boa, trace: Path, tmp_path: Path
) -> None:
    week = tmp_path / "week.yaml"
    week.write_text(
        "periods: [{name: day, hours: 06:00-18:00, budget_per_hour: 8}, "
        "{name: night, budget_per_hour: 16}]"
    )
    calendar = ("simulate", trace, "--policy", "boa", "--calendar", week)
    said, scaled = run.json(*calendar), run.json(*calendar, "--budget", 12)
    assert same(said) == same(scaled), "12 on average"
    run("simulate", trace, "--policy", "fixed", "--calendar", week, code=2)
    assert "--policy fixed needs --width" in run.err
