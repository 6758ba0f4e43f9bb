"""Trials of layouts as they are kept, and models that say how they can be laid out."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from boa.model.layouts import MOST_KEPT, OF_CLASS, Trial, told, trials_of, with_trial
from boa.train.torch.layout.applying import weighed
from boa.train.torch.layout.arranging import torchs_own
from boa.train.torch.layout.journal import FILE, NOTE, Journal
from boa.train.torch.layout.tensor_plans import fits, not_split, plan_of
from layout_job import Net, split_plan, tried

# Trials, kept


def test_the_newest_trials_are_kept_each_once() -> None:
    found: tuple[Trial, ...] = ()
    for n in range(3 * MOST_KEPT):
        found = with_trial(found, tried("ddp", local_batch=1 + n % (2 * MOST_KEPT), step_s=n + 1.0))
    assert len(found) == MOST_KEPT
    assert len({trial.key for trial in found}) == MOST_KEPT
    assert found[-1].step_s == 3 * MOST_KEPT


rows = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["gpu", "width", "step_s", "layout", "x"]), inner)
    ),
    max_leaves=8,
)


@given(rows)
def test_nonsense_is_no_trial(row: object) -> None:
    assert trials_of(row) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 0},
        {"width": True},
        {"step_s": 0.0},
        {"step_s": float("nan")},
        {"step_s": float("inf")},
        {"peak_bytes": -1},
        {"why": "x" * 201},
        {"layout": None},
    ],
)
def test_a_trial_with_an_impossible_value_is_left_out(wrong: dict[str, object]) -> None:
    assert trials_of([tried("ddp", step_s=1.0).as_row()])
    assert trials_of([{**tried("ddp", step_s=1.0).as_row(), **wrong}]) == ()


def test_a_journal_has_what_the_class_the_job_and_dead_ranks_know(tmp_path: Path) -> None:
    told = json.dumps([tried("fsdp", step_s=3.0).as_row()])
    first = Journal(tmp_path, {OF_CLASS: told})
    assert first.open() == []
    first.record(tried("ddp", step_s=1.0))
    first.note(tried("ddp", local_batch=16, out_of_memory=True), rank=3)
    second = Journal(tmp_path, {})
    assert [trial.out_of_memory for trial in second.open()] == [True]
    assert [trial.layout for trial in second.trials] == ["fsdp", "ddp", "ddp"]
    third = Journal(tmp_path, {})
    assert third.open() == []  # it was told of
    assert third.trials == second.trials


def test_a_damaged_journal_is_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"\xff\xfe{")
    (tmp_path / NOTE.format(0)).write_text("[")
    journal = Journal(tmp_path, {OF_CLASS: "{"})
    assert journal.open() == []
    assert journal.trials == ()


# Models


def test_a_model_is_weighed_without_being_built() -> None:
    sizes = weighed(Net, split_plan())
    built = Net()
    assert sizes.weights == sum(p.nbytes for p in built.parameters())
    assert 0.8 < sizes.split < 1
    assert 0 < sizes.block < sizes.weights


def test_a_plan_is_the_scripts_or_the_models_own_words() -> None:
    model = Net()
    assert plan_of(model, None) is None
    model._tp_plan = {"layers.*.up": "colwise", "layers.*.down": "rowwise"}  # type: ignore[assignment]
    plan = plan_of(model, None)
    assert plan is not None
    assert not_split(model, plan, 4) == ""
    assert not_split(model, plan, 3) == (
        "layer layers.0.up has a side of 16, which is not divisible by 3"
    )
    model._tp_plan = {"layers.*.up": "moe_experts"}  # type: ignore[assignment]
    assert plan_of(model, None) is None


@pytest.mark.parametrize(
    ("name", "pattern", "fitting"),
    [
        ("layers.0.up", "layers.*.up", True),
        ("layers.0.up.x", "layers.*.up", False),
        ("layers.0.1.up", "layers.*.up", False),
        ("up", "up", True),
    ],
)
def test_a_star_stands_for_one_part_of_a_name(name: str, pattern: str, fitting: bool) -> None:
    assert fits(name, pattern) is fitting


def test_hugging_faces_plan_is_understood() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        vocab_size=64,
    )
    model: nn.Module = transformers.LlamaForCausalLM(config)
    plan = plan_of(model, None)
    assert plan is not None
    assert not_split(model, plan, 2) == ""


def test_a_run_is_told_no_more_than_an_environment_holds() -> None:
    many = [tried("ddp", local_batch=n, why="\N{SNAKE}" * 200) for n in range(1, 65)]
    text = told(many * 10, most_bytes=4096)
    assert len(text) <= 4096
    assert [trial.local_batch for trial in trials_of(json.loads(text))][-1] == 64
    assert told([]) == ""


@pytest.mark.parametrize("text", ["[" * 100_000, '[{"local_batch": ' + "9" * 400 + "}]"])
def test_endless_json_is_an_empty_journal(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    journal = Journal(tmp_path, {OF_CLASS: text})
    assert journal.open() == []
    assert journal.trials == ()


def test_a_pipe_in_the_place_of_a_journal_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    os.mkfifo(tmp_path / NOTE.format(0))
    journal = Journal(tmp_path, {})
    assert journal.open() == []


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"layers.*.dwn": "rowwise"}, "got 'layers.*.dwn', and no layer is called so"),
        ({"layers.*.up": "columnwise"}, "got 'columnwise' for layers.*.up; expected a style"),
        ({"layers.*.up": ["colwise"]}, "got ['colwise'] for layers.*.up; expected a style"),
    ],
)
def test_a_plan_that_names_no_layer_or_style_is_refused(plan: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        plan_of(Net(), plan)
    assert plan_of(Net(), {"layers.*.up": "colwise"}) is not None  # type: ignore[dict-item]


def test_only_what_torch_itself_refuses_is_a_layouts_fault() -> None:
    def raised(work: Any) -> bool:
        try:
            work()
        except Exception as problem:
            return torchs_own(type(problem), problem.__traceback__)
        raise AssertionError("it did not fail")

    assert raised(lambda: nn.Linear(2, 2)(None))
    assert not raised(lambda: Path("/nowhere/at/all").read_text())
    assert not raised(lambda: int("x"))
