"""`boa paper`: what it writes, what it keeps, and how it says that something is missing."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from boa.cli import main
from boa.errors import FileError
from boa.paper.compare import Mean, at_spend, spend_for, tune
from boa.paper.data import Cut, find_data, trace_of
from boa.paper.pool import ResultStore, run_all
from boa.paper.registry import STUDIES
from boa.paper.runs import Document, Run
from boa.paper.study import QUICK, Evidence, judge

RUN = Run(setting="rubick", policy="boa", knob=1.5, draw=0, hours=2.0)

ASIDE = {"wall_s": 0.0, "code": ""}
"""What may differ between two runs of the same."""


def at(spend: float, jct: float, draw: int = 1) -> Document:
    run = {"draw": draw, "knob": spend}
    return {"spend_per_hour": spend, "average_jct_s": jct, "run": run}


def test_every_study_is_listed_with_its_claim(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["studies"]
    assert [entry["name"] for entry in listed] == list(STUDIES)
    assert all(entry["claim"] and entry["where"] for entry in listed)
    assert main(["paper", "list"]) == 0
    assert "frontier-rubick" in capsys.readouterr().out


def test_it_writes_picture_table_and_summary_and_prints_one_line(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["paper", "run", "workload-table", "--quick", "-o", str(tmp_path)]
    assert main([*told, "--data", str(shared_data)]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "YOLOv3 3.75 %" in said
    names = {path.name for path in tmp_path.iterdir()}
    assert {f"workload-table{s}" for s in (".svg", ".png", ".csv")} | {"summary.json"} <= names
    assert main(["paper", "report", "-o", str(tmp_path)]) == 0
    assert "| `workload-table` (Table 1) |" in capsys.readouterr().out


def test_json_prints_the_summary_and_nothing_else(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["paper", "run", "workload-table", "-o", str(tmp_path), "--data", str(shared_data)]
    assert main([*told, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "summary.json").read_text("utf-8"))
    assert printed["studies"]["workload-table"]["verdict"] == "partly"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (["run", "nothing"], "frontier-rubick"),
        (["run", "intro", "--data", "nowhere"], "Sia artifact, SOSP'23"),
        (["run", "intro", "--jobs", "0"], "--jobs"),
        (["report", "-o", "nowhere"], "boa paper run"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    told: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", *told]) == 2
    problem = capsys.readouterr().err
    assert said in problem
    assert problem.count("\n") == 1


def test_the_data_may_be_named_by_the_environment(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOA_PAPER_DATA", str(shared_data))
    assert find_data(None) == shared_data.resolve()
    monkeypatch.delenv("BOA_PAPER_DATA")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match="Rubick artifact"):
        find_data(None)


def test_a_run_is_kept_and_never_made_twice(shared_data: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    run_all(ResultStore(tmp_path, shared_data), [RUN, RUN], jobs=1, say=lines.append)
    assert len(lines) == 1
    assert lines[0].startswith("[1/1] rubick draw 0, boa 1.5: done")
    again = ResultStore(tmp_path, shared_data)
    assert again.missing([RUN]) == []
    found = again.get(RUN)
    assert found is not None
    assert found["completed"] == found["jobs"]
    assert found["spend_per_hour"] == pytest.approx(1.5 * found["cheapest_per_hour"], rel=0.2)
    assert again.stale() == 0


def test_a_run_that_fails_stops_nothing_and_is_tried_again(
    shared_data: Path, tmp_path: Path
) -> None:
    impossible = replace(RUN, knob=0.5)
    store, lines = ResultStore(tmp_path, shared_data), list[str]()
    run_all(store, [impossible, RUN], jobs=1, say=lines.append)
    assert "BudgetTooSmall" in store.failed[impossible]
    assert store.get(RUN) is not None
    assert sum("FAILED" in line for line in lines) == 1
    assert ResultStore(tmp_path, shared_data).missing([impossible, RUN]) == [impossible]


@pytest.mark.slow
def test_two_processes_give_the_results_of_one(shared_data: Path, tmp_path: Path) -> None:
    runs = [RUN, replace(RUN, knob=1.2)]
    one, two = (ResultStore(tmp_path / name, shared_data) for name in ("one", "two"))
    run_all(one, runs, jobs=1, say=lambda line: None)
    run_all(two, runs, jobs=2, say=lambda line: None)
    for run in runs:
        a, b = one.get(run), two.get(run)
        assert a is not None
        assert b is not None
        assert {**a, **ASIDE} == {**b, **ASIDE}


def test_redrawn_arrivals_keep_the_jobs_and_the_span(shared_data: Path) -> None:
    own = trace_of(shared_data, "rubick", Cut(draw=0))
    again = trace_of(shared_data, "rubick", Cut(draw=3, redrawn="own"))
    assert again.counts() == own.counts()
    assert again.span_s == pytest.approx(own.span_s)
    assert sorted(job.steps or 0 for job in again.jobs) == sorted(j.steps or 0 for j in own.jobs)
    thin = trace_of(shared_data, "pollux", Cut(every=6))
    assert len(thin.jobs) == 160
    assert thin.counts()["cifar10"] == pytest.approx(484 / 6, abs=1)


def test_frontiers_are_read_between_their_points() -> None:
    curve = [at(100, 4000), at(200, 1000), at(300, 1000)]
    assert at_spend(curve, 100 * 2**0.5, "average_jct_s") == pytest.approx(2000)
    assert at_spend(curve, 99, "average_jct_s") is None
    assert spend_for(curve, 2000) == pytest.approx(150)
    assert spend_for(curve, 900) is None
    assert spend_for(curve, 1000) == pytest.approx(200), "the least of those that reach it"


def test_confidence_intervals_are_student_s() -> None:
    mean = Mean.of([1.0, 2.0, 3.0])
    assert mean.value == 2.0
    assert mean.half == pytest.approx(4.303 / 3**0.5)
    assert Mean.of([1.5]).text() == "1.50×"


def test_tuning_asks_for_the_grid_then_between_it(tmp_path: Path) -> None:
    """A policy that spends 100 / knob, tuned to 160."""
    store = ResultStore(tmp_path, tmp_path)
    evidence = Evidence(store, QUICK, tmp_path)

    def make(knob: float) -> Run:
        return replace(RUN, knob=knob)

    asked = 0
    while wanted := tune(evidence, make, (0.3, 0.9), 160.0).wanted:
        for run in wanted:
            asked += 1
            assert run.knob is not None
            store.done[run] = at(100 / run.knob, 1.0)
    best = tune(evidence, make, (0.3, 0.9), 160.0).best
    assert best is not None
    assert best["spend_per_hour"] == pytest.approx(160, rel=0.03)
    assert asked <= 5


def test_verdicts() -> None:
    assert judge(False, {})[0] == "differs"
    assert judge(True, {"JCT": (1.7, 1.8)})[0] == "matches"
    verdict, reason = judge(True, {"JCT": (1.1, 1.8)})
    assert verdict == "partly"
    assert "1.10 against 1.8" in reason


def test_a_trace_that_is_not_there_is_named_with_where_it_comes_from(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("sia", "pollux", "rubick"):
        (tmp_path / part).symlink_to(shared_data.resolve() / part)
    told = ["paper", "run", "trace-itp", "--data", str(tmp_path), "-o", str(tmp_path / "out")]
    assert main(told) == 2
    problem = capsys.readouterr().err
    assert "itp/cluster01.csv" in problem
    assert "studies of other traces" in problem
    assert problem.count("\n") == 1


def test_all_leaves_out_studies_of_traces_that_are_not_there(
    shared_data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for part in ("sia", "pollux", "rubick"):
        (tmp_path / part).symlink_to(shared_data.resolve() / part)
    few = {name: STUDIES[name] for name in ("workload-table", "trace-itp")}
    monkeypatch.setattr("boa.paper.registry.STUDIES", few)
    told = ["paper", "all", "--quick", "--data", str(tmp_path), "-o", str(tmp_path / "out")]
    assert main(told) == 0
    said = capsys.readouterr()
    assert "trace-itp is left out" in said.err
    assert "workload-table: the paper" in said.out


def test_help_and_manual_say_how_much_of_newtrace_is_quick(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["paper", "run", "--help"]) == 0
    said = f"{QUICK.hours:g} hours of newTrace"
    assert said in " ".join(capsys.readouterr().out.split())
    manual = Path(__file__).parents[2] / "docs" / "cli.md"
    assert said in manual.read_text("utf-8")


def test_a_study_none_of_whose_runs_could_be_made_is_no_result(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    for part in ("sia", "pollux"):
        (data / part).symlink_to(shared_data.resolve() / part)
    shutil.copytree(shared_data / "rubick", data / "rubick", copy_function=shutil.copyfile)
    for folder in (data / "rubick", data / "rubick" / "iteration_times"):
        folder.chmod(0o755)
    for file in (data / "rubick" / "iteration_times").glob("*.csv"):
        file.write_text("nothing\n1\n", "utf-8")
    told = ["paper", "run", "frontier-rubick", "workload-table", "--quick", "--jobs", "1"]
    assert main([*told, "--data", str(data), "-o", str(out)]) == 1
    said = capsys.readouterr()
    assert "frontier-rubick: none of the runs that it lacked could be made: FileError: " in said.err
    assert "rubick/iteration_times/" in said.err
    assert "1 results in" in said.err
    assert said.out.startswith("workload-table")
    assert said.out.count("\n") == 1, "no verdict"
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert list(summary["studies"]) == ["workload-table"]
    assert list(summary["not_made"]) == ["frontier-rubick"]
