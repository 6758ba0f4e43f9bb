"""The real loop where parts of the budget pay for people's jobs, whatever their class."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.model.access import Caller
from boa.model.budgets import Budget
from boa.model.groupings import What
from boa.model.job import JobRecord
from boa.policy.boa import Planned
from boa.runtime.estimating import JobEstimate
from boa.scheduler.learn.payers import Payers
from boa.scheduler.money.costs import month_of
from boa.scheduler.money.grouping import Grouped
from boa.server.render.charges import charged
from boa.server.render.statements import read_statement
from live import BILLINGS, Live, config, prior, profile, spec

NET = profile("net", work=(7200.0,), alpha=0.8)
VISION = Budget(name="vision", per_hour=6.0, teams=("vision",))
SPEECH = Budget(name="speech", per_hour=2.0, max_per_hour=2.6, users=("ana",))
LAB = Budget(name="all", per_hour=8.0, parts=(VISION, SPEECH))


def served(folder: Path, billing: str = "gpu", lab: Budget = LAB) -> Live:
    settings = config(folder, billing=billing, sharing=lab, priors={"net": prior(NET, 2.0)})
    return Live(settings, {"net": NET})


def submitted(live: Live, *, owner: str = "", team: str = "") -> JobRecord:
    future = live.loop.submit(spec("net"), owner=owner, team=team)
    live.settle()
    return live.job(future.result(0).id)


@BILLINGS
def test_jobs_of_one_class_are_planned_for_by_who_pays(tmp_path: Path, billing: str) -> None:
    live = served(tmp_path, billing)
    eve, ana = submitted(live, owner="eve", team="vision"), submitted(live, owner="ana")
    assert (eve.payer, ana.payer) == ("vision", "speech")
    live.advance(60.0)
    memory = live.loop.scheduler.planner.memory
    assert isinstance(memory, Planned)
    assert set(memory.by_class) >= {"net@vision", "net@speech"}
    assert all(live.job(job.id).run is not None for job in (eve, ana))
    spends = {budget.name: budget.spend for budget in memory.solution.budgets}
    assert spends["vision"] > spends["speech"] > 0, "vision has three times the money"
    live.close()


def test_speeds_are_learned_together_whoever_pays(tmp_path: Path) -> None:
    live = served(tmp_path)
    submitted(live, owner="eve", team="vision")
    submitted(live, owner="ana")
    live.advance(600.0)
    assert live.loop.classes() == ["net"]
    document = live.loop.class_document("net")
    assert document is not None
    assert document["jobs"] == 2
    live.close()


def test_the_bill_says_who_paid_for_which_part_of_a_class(tmp_path: Path) -> None:
    live = served(tmp_path)
    submitted(live, owner="eve", team="vision")
    submitted(live, owner="ana")
    submitted(live, owner="bob")
    live.advance(3600.0)
    money, now = live.loop.snapshot.money, live.loop.snapshot.now
    assert live.store is not None
    store = live.store

    def bill(what: What) -> Sequence[dict[str, Any]]:
        return charged(store, 0.0, now, now, Grouped(what), money.sharing).rows

    rows = bill("payer")
    assert {row["payer"] for row in rows} >= {"vision", "speech", "all"}
    first, end = month_of(now)
    found = read_statement(store, money, first, end, now)
    assert {(line["payer"], line["user"], line["job_class"]) for line in found["lines"]} == {
        ("vision", "eve", "net"),
        ("speech", "ana", "net"),
        ("all", "bob", "net"),
    }
    assert [group["name"] for group in found["by_class"]] == ["net"]
    by_class = bill("class")
    assert {row["class"] for row in by_class} <= {"net", None}
    live.close()


def test_what_a_part_lends_and_borrows_is_that_of_its_people(tmp_path: Path) -> None:
    live = served(tmp_path)
    submitted(live, owner="ana")
    live.advance(3600.0)
    parts = {part.name: part for part in live.loop.snapshot.money.parts}
    assert parts["vision"].lent > 0 > parts["speech"].lent
    assert parts["vision"].now_per_hour == 0.0 < parts["speech"].now_per_hour
    live.close()


def test_a_cap_is_over_the_jobs_of_its_people_alone(tmp_path: Path) -> None:
    capped = replace(SPEECH, max_per_hour=None, max_spend=2.0)
    live = served(tmp_path, lab=replace(LAB, parts=(VISION, capped)))
    jobs = [submitted(live, owner="ana") for _ in range(3)]
    free = [submitted(live, owner="eve", team="vision") for _ in range(3)]
    live.advance(60.0)

    def held(some: list[JobRecord]) -> int:
        runs = (live.job(job.id).run for job in some)
        return sum(run.allocation.width for run in runs if run is not None)

    assert held(jobs) <= 2 < held(free)
    live.close()


def test_whoever_pays_now_is_as_configured_when_the_service_comes_back(tmp_path: Path) -> None:
    live = served(tmp_path)
    job = submitted(live, owner="ana")
    assert job.payer == "speech"
    live.config = replace(live.config, sharing=replace(LAB, parts=(VISION,)))
    live.crash()
    assert live.job(job.id).payer == ""
    live.advance(60.0)
    assert live.job(job.id).run is not None
    live.close()


def test_an_estimate_is_by_the_plan_of_whoever_asks(tmp_path: Path) -> None:
    live = served(tmp_path)
    submitted(live, owner="eve", team="vision")
    submitted(live, owner="ana")
    live.advance(60.0)

    def estimate(by: Caller) -> JobEstimate:
        return live.loop.estimate(spec("net"), by)

    rich, poor = estimate(Caller(name="eve", team="vision")), estimate(Caller(name="ana"))
    assert (rich.stream, poor.stream) == ("net@vision", "net@speech")
    assert rich.time_s is not None
    assert poor.time_s is not None
    assert rich.time_s < poor.time_s
    assert rich.plan is not None
    live.close()


def test_the_first_part_that_fits_pays_and_within_it_likewise() -> None:
    thesis = Budget(name="thesis", classes=("bert",))
    tree = Budget(
        name="lab",
        per_hour=9.0,
        parts=(
            Budget(name="eve", users=("eve",), classes=("gpt",)),
            Budget(name="vision", teams=("vision",), parts=(thesis,)),
            Budget(name="speech", classes=("bert", "wav")),
        ),
    )

    def payer(job_class: str, user: str, team: str) -> str:
        return tree.payer_by_people(job_class, user, team)

    assert payer("gpt", "eve", "vision") == "eve"
    assert payer("bert", "eve", "vision") == "thesis", "vision's thesis is of vision's jobs alone"
    assert payer("wav", "ian", "vision") == "vision", "all of a team's, where no class is named"
    assert payer("bert", "ian", "") == "", "its class says who pays"
    pays = tree.who_pays()
    assert pays("bert") == "speech"
    assert pays("gpt") == "lab", "eve's part is for her alone"
    assert pays("wav@vision") == "vision"
    assert pays("wav@gone") == "speech", "a part that was removed pays no more"
    planned = tree.paying_for(("bert", "bert@thesis", "gpt"))
    assert planned.payers == {"bert": "speech", "bert@thesis": "thesis", "gpt": "lab"}


@pytest.mark.parametrize("gone", [0.0, 1.0])
def test_who_pays_fades_and_whoever_is_there_is_not_forgotten(gone: float) -> None:
    payers = Payers()
    for _ in range(200):
        payers = payers.arrived("vision")
    assert payers.shares() == {"vision": 1.0}
    for _ in range(200):
        payers = payers.arrived("speech")
    assert set(payers.shares()) == {"speech"}
    there = payers.shares({"vision"} if gone else ())
    assert ("vision" in there) == bool(gone)
    assert sum(there.values()) == pytest.approx(1.0)
