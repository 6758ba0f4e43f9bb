"""A summary that is none is an error before anything is simulated; none is written with NaN."""

import json
from pathlib import Path

import pytest

from boa.cli import main
from boa.paper.registry import STUDIES
from boa.paper.results import redo
from boa.paper.study import QUICK, Evidence, Study, StudyOutcome, no_runs

WORDS = ("name", "where", "scale", "claim", "measured", "verdict", "reason")
ENTRY = dict.fromkeys(WORDS, "quick") | {"name": "usage", "numbers": {}, "tables": [], "files": []}


def with_entry(**changed: object) -> str:
    return json.dumps({"studies": {"usage": ENTRY | changed}})


BROKEN = [
    "",
    "[]",
    "[" * 200_000,
    '{"studies": 5}',
    '{"studies": {"usage": 5}}',
    '{"studies": {"usage": {}}}',
    with_entry(claim=5),
    with_entry(tables=5),
    with_entry(tables=[{"title": "a"}]),
    with_entry(tables=[{"title": "a", "heads": ["b"], "rows": [[1]]}]),
    with_entry(numbers={"ratio": float("nan")}),
    with_entry(numbers={"ratio": "X"}).replace('"X"', "1e999"),
    with_entry(reason="\ud800"),
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_summary_that_is_none_is_named_and_nothing_is_simulated(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "summary.json").write_text(text, "utf-8")
    monkeypatch.setattr("boa.paper.data.NEEDED", ())
    monkeypatch.setattr("boa.paper.results.run_missing", None)
    told = ["-o", str(tmp_path)]
    for words in (["report"], ["run", "usage", "--data", str(tmp_path)]):
        assert main(["paper", *words, *told]) == 2
        problem = capsys.readouterr().err
        assert f"{tmp_path}/summary.json: " in problem
        assert problem.count("\n") == 1


def test_a_whole_summary_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = {"title": "Leads", "heads": ["a"], "rows": [["b"]]}
    (tmp_path / "summary.json").write_text(with_entry(tables=[table]), "utf-8")
    assert main(["paper", "report", "-o", str(tmp_path)]) == 0
    assert "*Leads*" in capsys.readouterr().out


def without_number(_: Evidence) -> StudyOutcome:
    numbers = {"ratio": float("nan"), "most": [float("inf"), 1.0]}
    return StudyOutcome(rows=[], measured="", verdict="ours", reason="", numbers=numbers)


def test_no_summary_has_nan_in_it(tmp_path: Path) -> None:
    draw = STUDIES["usage"].draw
    study = Study(name="usage", where="", claim="", runs=no_runs, result=without_number, draw=draw)
    told: list[object] = []
    redo([study], tmp_path, tmp_path, QUICK, jobs=1, say=told.append, tell=told.append)
    written = (tmp_path / "summary.json").read_text("utf-8")
    assert json.loads(written)["studies"]["usage"]["numbers"] == {"ratio": None, "most": [None, 1]}
    assert "NaN" not in written
