"""The paper's simulated figures, each in a tiny version that shows the direction of its claim.

A couple of hours of each trace: enough for who is ahead, not for by how much.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from boa.paper.compare import duels
from boa.paper.pool import ResultStore
from boa.paper.registry import STUDIES
from boa.paper.results import finish, run_missing
from boa.paper.study import Evidence, Scale, StudyOutcome

TINY = Scale(
    name="tiny",
    draws=(1,),
    targets=(0.5, 0.8),
    few_targets=(0.5, 0.8),
    loads=(1.05, 1.5, 3.0),
    hours=2.0,
    trace_hours=8.0,
    every=96,
    experiment_hours=2.0,
    rubick_hours=5.0,
    cv2s=(1.0, 20.0),
    seeds=(1,),
)
Redone = Callable[[str], StudyOutcome]


@pytest.fixture(scope="module")
def redone(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Redone:
    """Runs what a study needs; figures share their runs here as they do in the command."""
    folder = tmp_path_factory.mktemp("paper")
    evidence = Evidence(ResultStore(folder, shared_data), TINY, shared_data)

    def redo(name: str) -> StudyOutcome:
        study = STUDIES[name]
        run_missing([study], evidence, jobs=1, say=lambda line: None)
        assert not evidence.store.failed
        entry = finish(study, evidence, folder)
        assert entry["files"] == [f"{name}.svg", f"{name}.png", f"{name}.csv"]
        assert all((folder / file).stat().st_size > 0 for file in entry["files"])
        outcome = study.result(evidence)
        assert isinstance(study.draw(outcome), Figure)
        return outcome

    return redo


@pytest.mark.slow
@pytest.mark.parametrize("name", ["frontier-pollux", "intro", "frontier-rubick", "frontier-sia"])
def test_boa_improves_the_frontier_in_every_setting(redone: Redone, name: str) -> None:
    numbers = redone(name).numbers
    assert numbers["least_jct_ratio"] > 1.0
    assert numbers["p95_ratio"] > 1.0


@pytest.mark.slow
def test_the_experiment_boa_is_faster_at_every_budget_and_rescales_less(redone: Redone) -> None:
    simulated = redone("implementation").numbers["simulation"]
    assert simulated["least_ratio"] > 1.0


@pytest.mark.slow
def test_usage_boa_starts_jobs_at_once(redone: Redone) -> None:
    outcome = redone("usage")
    assert outcome.numbers["jct_ratio"] > 1.0
    waits = {row["policy"]: row["average_queueing_s"] for row in outcome.rows}
    assert waits["boa"] == 0 < waits["pollux-autoscale"]


@pytest.mark.slow
def test_actual_usage_reclaiming_nodes_costs_both_policies(redone: Redone) -> None:
    numbers = redone("actual-usage").numbers
    assert 0 < numbers["boa_more"] < 1
    assert 0 < numbers["rival_more"] < 1


@pytest.mark.slow
def test_efficiency_boa_is_faster_and_less_efficient_at_the_same_spend(redone: Redone) -> None:
    outcome = redone("efficiency")
    spends = [row["spend_per_hour"] for row in outcome.rows]
    assert spends[0] == pytest.approx(spends[1], rel=0.05)
    assert outcome.numbers["jct_ratio"] > 1.0
    assert outcome.numbers["boa"] < outcome.numbers["rival"]


@pytest.mark.slow
def test_prediction_boa_that_learns_beats_a_rival_that_knows(redone: Redone) -> None:
    """A few hours are too short to learn in; even so BOA is ahead of Pollux with the truth."""
    outcome = redone("prediction")
    found = outcome.drawn["found"]
    against = duels(found["boa", "learned"], found["pollux-autoscale", "perfect"])
    ratios = [duel.jct for duel in against if duel.jct is not None]
    assert ratios
    assert min(ratios) > 1.0


@pytest.mark.slow
def test_variability_boa_is_ahead_however_bursty_arrivals_are(redone: Redone) -> None:
    outcome = redone("variability")
    ratios = {key: value for key, value in outcome.numbers.items() if key.startswith("ratio_at_")}
    assert len(ratios) == 2
    assert all(ratio > 1.0 for ratio in ratios.values())


@pytest.mark.slow
def test_rivals_fixed_clusters_are_behind_and_rules_for_single_jobs_hardly_ahead(
    redone: Redone,
) -> None:
    outcome = redone("rivals")
    best = outcome.numbers["best"].values()
    assert best
    assert all(entry["jct_ratio"] > 0.9 for entry in best), "two hours are too short to learn in"
    assert min(outcome.numbers["fixed"].values()) > 1.0
    assert {row["policy"] for row in outcome.rows} >= {"hesrpt", "shockwave", "gavel", "scavenger"}


@pytest.mark.slow
def test_causes_without_epochs_a_price_for_every_job_is_as_good_as_boa(redone: Redone) -> None:
    """Theorem: then one exchange rate of seconds and dollars is all there is to know."""
    numbers = redone("causes").numbers
    for world in ("T4", "T4, V100 and A100"):
        assert numbers["lead"][f"{world}, both"] == pytest.approx(1.0, abs=0.03)
        assert numbers["lead"][f"{world}, nothing"] > 1.0
    ladder = list(numbers["ladder"].values())
    assert ladder[0] > ladder[-1]


@pytest.mark.slow
def test_restarts_everybody_is_faster_with_cheap_ones(redone: Redone) -> None:
    numbers = redone("restarts").numbers
    assert min(numbers["gains"].values()) > 1.0
    assert min(numbers["leads"].values()) > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("name", ["newtrace", "three-types", "itp", "saturn", "dense"])
def test_other_traces_rivals_are_behind_on_average(redone: Redone, name: str) -> None:
    held = redone(f"trace-{name}").numbers["held"]
    assert min(lead["over_bound"] for lead in held if lead["policy"] == "boa") > 0.95
    ratios = [lead["jct_ratio"] for lead in held if lead["policy"] != "boa" and lead["jct_ratio"]]
    assert ratios
    assert sum(ratios) / len(ratios) > 1.0
