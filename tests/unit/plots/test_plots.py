"""Figures: files of the kind asked for, complete, reproducible, and true to the numbers."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boa
import boa.plots.curve
from boa.amounts import percent
from boa.errors import BudgetTooSmall, NoPlanFound
from boa.plots.curve import Curve, Mark, curve_of, glue_points, shadow_price, slower
from boa.plots.panels import panels_of
from boa.plots.render import frontier_picture, width_picture
from boa.plots.words import Money, routed_runs, runs, significant

BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".html": b"<!doctype html>"}
NASTY = '</script><script>alert("$x$")</script> 漢字 & <b>'


def job_class(name: str, rate: float, work: float, **changes: Any) -> dict[str, Any]:
    speedup = {"T4": {"amdahl": 0.95}, "A100": {"amdahl": 0.9, "scale": 2.5}}
    epochs = [{"work_s": work, "speedup": speedup}, {"work_s": 3 * work, "speedup": speedup}]
    return {"name": name, "arrivals_per_hour": rate, "rescale_s": 40, "epochs": epochs, **changes}


WORKLOAD = boa.parse_workload(
    {
        "version": 1,
        "gpu_types": {"T4": {"price": 1.0, "gpus_per_node": 4}, "A100": {"price": 3.0}},
        "classes": [job_class("small", 6, 400), job_class(NASTY, 1, 5000)],
    }
)


@pytest.fixture(scope="module")
def frontier() -> boa.Frontier:
    return boa.frontier(WORKLOAD)


@pytest.fixture(scope="module")
def curve(frontier: boa.Frontier) -> Curve:
    drawn = curve_of(WORKLOAD, frontier, budget=1.5 * frontier.cheapest)
    above = tuple(Mark(b, 1.1 * drawn.jct_at(b)) for b in drawn.budgets[1:-1:5].tolist())
    return replace(drawn, glue=above)


@pytest.fixture(scope="module")
def solution(frontier: boa.Frontier) -> boa.Solution:
    return boa.plan(WORKLOAD, 1.5 * frontier.cheapest)


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_both_figures_are_files_of_the_kind_asked_for(
    suffix: str, curve: Curve, solution: boa.Solution
) -> None:
    for picture in (
        frontier_picture(curve, suffix),
        frontier_picture(curve, suffix.upper()),
        width_picture(WORKLOAD, solution, suffix),
    ):
        assert picture.startswith(BEGINNINGS[suffix])
        assert len(picture) > 5_000


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_the_same_figure_is_the_same_file(suffix: str, curve: Curve) -> None:
    assert frontier_picture(curve, suffix) == frontier_picture(curve, suffix)


def test_figures_fit_a_slide(curve: Curve, solution: boa.Solution) -> None:
    for picture in (
        frontier_picture(curve, ".png"),
        width_picture(WORKLOAD, solution, ".png"),
    ):
        width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
        assert 900 < width < 2600
        assert 0.35 < height / width < 1.2


@pytest.mark.parametrize(
    "rules",
    [{"routing": "migrate"}, {"routing": "epoch", "rescaling": False}, {"billing": "node"}],
)
def test_widths_are_drawn_under_all_rules(rules: dict[str, Any]) -> None:
    cheapest = boa.frontier(WORKLOAD, **rules).cheapest
    drawn = boa.plan(WORKLOAD, 1.3 * cheapest, **rules)
    for suffix in (".png", ".html"):
        assert width_picture(WORKLOAD, drawn, suffix)


def test_a_frontier_of_one_point_is_drawn_too() -> None:
    one = job_class("one", 1, 100, max_gpus=1)
    one["epochs"] = [{"work_s": 100, "speedup": {"T4": {"power": 1}}}]
    workload = boa.parse_workload({"version": 1, "gpu_types": {"T4": {}}, "classes": [one]})
    found = boa.frontier(workload)
    for suffix in BEGINNINGS:
        assert frontier_picture(curve_of(workload, found, budget=found.cheapest), suffix)


@pytest.mark.parametrize("factor", [1.0, 1.02, 1.3, 2.0, 4.0, 20.0])
def test_any_chosen_budget_is_inside_the_picture(factor: float, frontier: boa.Frontier) -> None:
    budget = factor * frontier.cheapest
    drawn = curve_of(WORKLOAD, frontier, budget=budget)
    assert drawn.budgets[0] <= budget <= drawn.budgets[-1]
    assert drawn.chosen is not None
    assert drawn.chosen.jct == pytest.approx(drawn.jct_at(budget))
    assert frontier_picture(drawn, ".png")


def test_the_curve_is_the_frontier(curve: Curve, frontier: boa.Frontier) -> None:
    for budget in np.linspace(curve.budgets[0], curve.budgets[-1], 50):
        assert curve.jct_at(budget) == pytest.approx(frontier.at(budget).average_jct)


def test_the_shadow_price_is_what_one_more_dollar_buys(frontier: boa.Frontier) -> None:
    inside = [float(b) for b in (frontier.budgets[:-1] + frontier.budgets[1:]) / 2]
    for budget in inside:
        step = 1e-6 * budget
        bought = (frontier.at(budget).objective - frontier.at(budget + step).objective) / step
        assert shadow_price(frontier, budget) == pytest.approx(bought, rel=1e-3, abs=1e-6)
    assert shadow_price(frontier, 2 * frontier.fastest_budget) == 0.0


def test_algorithm_1_has_no_point_where_it_finds_no_plan(
    curve: Curve, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def failing(workload: boa.Workload, budget: float, **rules: Any) -> Any:
        asked.append(budget)
        if len(asked) % 3 == 0:
            raise NoPlanFound("none")
        if len(asked) % 3 == 1:
            raise BudgetTooSmall(budget, budget + 1)
        return boa.plan(workload, budget, rescaling=rules["rescaling"])

    monkeypatch.setattr(boa.plots.curve, "plan", failing)
    drawn = glue_points(curve, WORKLOAD)
    assert [mark.budget for mark in drawn.glue] == asked[1::3]
    assert slower(drawn) == "0 %"
    assert frontier_picture(replace(drawn, glue=()), ".html")


class Tags(HTMLParser):
    """Every element is closed, in order; what the page refers to is inside the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, str] = {}
        self.references: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.references += [v or "" for k, v in attributes if k in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)
            self.key = dict(attributes).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            if self.key == "data":
                self.texts["data"] = data
            else:
                self.scripts.append(data)


@pytest.fixture(scope="module")
def pages(curve: Curve, solution: boa.Solution) -> dict[str, Tags]:
    parsed = {}
    for name, picture in (
        ("frontier", frontier_picture(curve, ".html")),
        ("widths", width_picture(WORKLOAD, solution, ".html")),
    ):
        parsed[name] = Tags()
        parsed[name].feed(picture.decode("utf-8"))
    return parsed


@pytest.mark.parametrize("name", ["frontier", "widths"])
def test_a_page_is_well_formed_and_needs_no_network(name: str, pages: dict[str, Tags]) -> None:
    page = pages[name]
    assert page.open == []
    assert page.references == []
    assert len(page.scripts) == 2, "no name in the data ends a script early"
    addresses = set(re.findall(r"https?://[^\"' ]+", "".join(page.scripts)))
    assert addresses <= {"http://www.w3.org/2000/svg"}, "a namespace, which nobody fetches"


def test_the_page_holds_the_numbers_of_the_figure(
    pages: dict[str, Tags], curve: Curve, solution: boa.Solution
) -> None:
    data = json.loads(pages["frontier"].texts["data"])
    assert data["budgets"] == curve.budgets.tolist()
    assert data["jcts"] == curve.jcts.tolist()
    names = [p["name"] for p in json.loads(pages["widths"].texts["data"])["panels"]]
    assert names == [panel.name for panel in panels_of(WORKLOAD, solution).panels]


@pytest.mark.parametrize("name", ["frontier", "widths"])
def test_the_scripts_run(name: str, pages: dict[str, Tags], tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine")
    asks = {
        "frontier": "const l = layout(D); const r = readings(D, D.cheapest * 1.5);"
        "console.log(JSON.stringify([r.jct, l.x.back(l.x(7)), l.y.back(l.y(70)), r.rows[0]]))",
        "widths": "const l = layout(D.panels[0], widest(D.panels)); const n = D.panels[0].lines[0];"
        "console.log(JSON.stringify([1, l.x.back(l.x(7)), l.y.back(l.y(70)),"
        " readings(D.panels[0], n, n.stretches[0])[0]]))",
    }
    script = tmp_path / "page.js"
    data = f"const D = {pages[name].texts['data']};"
    script.write_text("\n".join([data, *pages[name].scripts, asks[name]]), "utf-8")
    ran = subprocess.run([node, str(script)], capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    jct, back_x, back_y, title = json.loads(ran.stdout)
    assert (back_x, back_y) == (pytest.approx(7), pytest.approx(70))
    assert jct > 0
    assert title.startswith("$") or "×" in title


@pytest.mark.parametrize(
    ("share", "said"), [(0, "0 %"), (1, "100 %"), (0.34, "34 %"), (0.0062, "0.62 %"), (0.05, "5 %")]
)
def test_shares_in_words(share: float, said: str) -> None:
    assert percent(share) == said


def test_money_counts_gpus_where_every_price_is_one() -> None:
    assert Money(counts_gpus=True).rate(150) == "150 GPUs"
    assert Money(counts_gpus=True).rate(95.684) == "95.68 GPUs"
    assert Money(counts_gpus=False).rate(1500) == "$1,500.00/h"
    assert Money(counts_gpus=False).job(0.00123) == "$0.0012"
    assert Money.of(WORKLOAD) == Money(counts_gpus=False)
    assert significant(1234.5) == "1,234"


def test_a_shadow_price_that_holds_for_cents_is_told_in_cents() -> None:
    money = Money(counts_gpus=False)
    assert money.saving(12.0, 1000.0) == "one more $/h saves 12 s"
    assert money.saving(26_641.0, 7938.0) == "another $0.010/h saves 4.4 min"
    assert Money(counts_gpus=True).saving(500.0, 1000.0) == "another 0.10 GPUs saves 50 s"


def test_widths_are_told_as_runs() -> None:
    from boa.model.plan import ClassPlan, Route, Variant

    types = ("T4", "T4", "T4", "A100")
    assert list(runs(Variant(1.0, types, (2, 2, 4.5, 1)))) == [
        "2×T4 ep 1–2",
        "4.5×T4 ep 3",
        "1×A100 ep 4",
    ]
    assert list(runs(Variant(1.0, ("T4",) * 9, (3,) * 9))) == ["3×T4 all epochs"]
    split = (Route(0.3, "A100", 1), Route(0.7, "T4", 2))
    routed = ClassPlan(name="x", routes=(split, split, (Route(1.0, "T4", 8),)))
    assert list(routed_runs(routed)) == ["ep 1–2: 70 % 2×T4 + 30 % 1×A100", "ep 3: 8×T4"]
