"""Sweeps: what they draw, how values get into commands, and what every error says."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from boa.errors import InputError
from boa.formats.sweep import MAX_JOBS, SWEEP, drawn, load_sweep, read_sweep
from boa.model.sweep import Halving

JOB = {"class": "net", "run": ["python", "train.py"], "epochs": 9}


def rows(parameters: Any, **more: Any) -> list[dict[str, str]]:
    return [one.values for one in drawn(read_sweep({"job": JOB, "parameters": parameters, **more}))]


def test_a_grid_has_every_combination_once_in_a_fixed_order() -> None:
    found = rows({"lr": [1e-4, 3e-4], "seed": [1, 2]})
    assert found == [
        {"lr": "0.0001", "seed": "1"},
        {"lr": "0.0001", "seed": "2"},
        {"lr": "0.0003", "seed": "1"},
        {"lr": "0.0003", "seed": "2"},
    ]


def test_draws_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    asked = {"lr": {"low": 1e-5, "high": 1e-2, "log": True}, "act": ["relu", "gelu"]}
    first = rows(asked, draws=20, seed=7)
    assert first == rows(asked, draws=20, seed=7)
    assert first != rows(asked, draws=20, seed=8)
    assert all(1e-5 <= float(row["lr"]) <= 1e-2 for row in first)
    assert {row["act"] for row in first} == {"relu", "gelu"}
    small = sum(float(row["lr"]) < 3.2e-4 for row in rows(asked, draws=400))
    assert 120 < small < 280, "half of them by logarithm"


def test_whole_draws_reach_both_ends() -> None:
    found = {int(row["k"]) for row in rows({"k": {"low": 1, "high": 4, "whole": True}}, draws=99)}
    assert found == {1, 2, 3, 4}


def specs(run: Any, parameters: Any, **job: Any) -> list[tuple[str, ...]]:
    sweep = read_sweep({"job": {**JOB, "run": run, **job}, "parameters": parameters})
    return [one.spec.run for one in drawn(sweep)]


def test_values_stand_where_the_command_names_them_or_are_added_to_it() -> None:
    assert specs(["train", "--lr={lr}"], {"lr": [1], "seed": [2]}) == [
        ("train", "--lr=1", "--seed", "2")
    ]
    assert specs("train --lr {lr}", {"lr": ["a b"], "x": ["$HOME"]}) == [
        ("sh", "-c", "train --lr 'a b' --x '$HOME'")
    ]
    sweep = read_sweep(
        {"job": {**JOB, "env": {"LR": "{lr}", "X": "{y}"}}, "parameters": {"lr": [1]}}
    )
    (only,) = drawn(sweep)
    assert only.spec.env == {"LR": "1", "X": "{y}"}
    assert only.spec.run == ("python", "train.py"), "it stands in the environment"
    assert only.spec.name == "net lr=1"


def test_a_value_that_looks_like_a_place_is_left_alone() -> None:
    assert specs(["{a}", "{b}"], {"a": ["{b}"], "b": ["{a}"]}) == [("{b}", "{a}")]


def test_a_job_file_may_have_a_sweep_in_it(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        "class: net\nrun: train\nworkdir: code\nepochs: 9\n"
        "sweep:\n  parameters: {lr: [1, 2]}\n  halving: {metric: acc, better: max}\n"
    )
    found = load_sweep(path)
    assert found.job.workdir == str(tmp_path / "code")
    assert found.halving == Halving(metric="acc", better="max", factor=3, first=1)
    path.write_text("class: net\nrun: train\nepoch: 9\nsweep: {parameters: {lr: [1]}}\n")
    with pytest.raises(InputError, match="epoch"):
        load_sweep(path)


WRONG: list[tuple[Any, str]] = [
    ({"parameters": {}}, "parameters"),
    ({"parameters": {"lr": []}}, "parameters.lr"),
    ({"parameters": {"lr": 3}}, "parameters.lr"),
    ({"parameters": {"lr": [1, 1]}}, "each value once"),
    ({"parameters": {"lr": ["a\nb"]}}, r"parameters.lr\[0\]"),
    ({"parameters": {"lr": [float("nan")]}}, r"parameters.lr\[0\]"),
    ({"parameters": {"--lr": [1]}}, "parameters"),
    ({"parameters": {"l r": [1]}}, "parameters"),
    ({"parameters": {"lr": {"low": 1, "high": 2}}}, "draws"),
    ({"parameters": {"lr": {"low": 2, "high": 1}}, "draws": 3}, "parameters.lr.high"),
    ({"parameters": {"lr": {"low": 0, "high": 1, "log": True}}, "draws": 3}, "parameters.lr.low"),
    ({"parameters": {"lr": {"low": 0.5, "high": 2, "whole": True}}, "draws": 3}, "whole"),
    ({"parameters": {"lr": [1]}, "draws": 0}, "draws"),
    ({"parameters": {"lr": [1]}, "draws": MAX_JOBS + 1}, "draws"),
    ({"parameters": {n: list(range(11)) for n in "abc"}}, "1,331 combinations"),
    ({"parameters": {"lr": [1]}, "halving": {"factor": 1}}, "halving.factor"),
    ({"parameters": {"lr": [1]}, "halving": {"first": 9}}, "halving.first.*epochs, which are 9"),
    (
        {"parameters": {"lr": [1]}, "halving": {}, "job": {"class": "net", "run": "train"}},
        "halving.first",
    ),
    (
        {"parameters": {"a": ["x" * 1000, *range(99)]}, "job": {**JOB, "run": "{a}" * 999}},
        "job.run.* characters",
    ),
    ({"parameters": {"lr": [1]}, "halving": {"better": "up"}}, "halving.better"),
    ({"parameters": {"lr": [1]}, "halving": {"metrics": "x"}}, "halving.metrics"),
    ({"parameters": {"lr": [1]}, "seed": -1}, "seed"),
    ({"parameters": {"lr": [1]}, "grid": True}, "grid"),
    ({"parameters": {"lr": [1]}, "job": {**JOB, "key": "k"}}, "job.key"),
    ({"parameters": {"lr": [1]}, "job": {"class": "net"}}, "job.run"),
]


@pytest.mark.parametrize(("document", "words"), WRONG)
def test_every_wrong_sweep_is_refused_by_name(document: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_sweep({"job": JOB, **document})


def test_the_schema_is_valid_and_takes_what_is_read() -> None:
    schema = SWEEP.schema()
    Draft202012Validator.check_schema(schema)
    sweep = {"job": JOB, "parameters": {"lr": [1, "a", True]}, "halving": {}, "seed": 3}
    assert Draft202012Validator(schema).is_valid(sweep)
    read_sweep(sweep)


@pytest.mark.parametrize("value", ["\ud800", "a\u2028b", "\x9b31m"])
def test_values_are_text_that_every_list_of_jobs_can_show(value: str) -> None:
    with pytest.raises(InputError, match=r"parameters\.a"):
        read_sweep({"job": JOB, "parameters": {"a": [value]}})


@pytest.mark.parametrize(
    ("job", "count", "words"),
    [
        ({"run": "echo " + "{a}" * 200}, 1, "a command of at most 128 KB"),
        ({"env": {"ALL": "{a}" * 3000}}, 1, "variables of at most 10 KB"),
        ({"run": "echo {a} " + "x" * 100_000}, 90, "together"),
    ],
)
def test_values_make_no_job_longer_than_one_may_be_nor_all_too_long(
    job: dict[str, Any], count: int, words: str
) -> None:
    values = [f"{number}" * 500 for number in range(10, 10 + count)]
    document = {"job": {**JOB, **job}, "parameters": {"a": values, "b": [1, 2]}}
    with pytest.raises(InputError, match=words):
        drawn(read_sweep(document))


def test_whoever_changes_a_schema_changes_their_own_alone() -> None:
    SWEEP.schema()["properties"]["job"] = None
    assert SWEEP.schema()["properties"]["job"] is not None
