"""Which layout comes next: by memory, by what was measured, and by what ran out of memory."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from boa.model.layouts import MOST_KEPT, OF_CLASS, Trial, told, trials_of, with_trial
from boa.train.torch.layout.applying import weighed
from boa.train.torch.layout.arranging import torchs_own
from boa.train.torch.layout.choosing import MOST_TRIED, Choice, Place, choose
from boa.train.torch.layout.journal import FILE, NOTE, Journal
from boa.train.torch.layout.layouts import Layout, fitting, layout_named, layouts_for
from boa.train.torch.layout.needs import Sizes, fixed_bytes
from boa.train.torch.layout.tensor_plans import fits, not_split, plan_of
from layout_job import Net, split_plan

GB = 10**9
LARGE = Sizes(weights=20 * GB, trained=20 * GB, block=GB, split=0.9)
"""80 GB with gradients and moments."""
SMALL = Sizes(weights=GB, trained=GB, block=GB // 10)
layouts = st.builds(
    Layout,
    st.sampled_from(["ddp", "fsdp-keep", "fsdp"]),
    st.sampled_from([1, 2, 4, 8]),
    st.booleans(),
)


def place(world: int = 4, memory: int = 80 * GB, nodes: int = 1) -> Place:
    return Place(gpu="A100", world=world, nodes=nodes, local_world=world // nodes, memory=memory)


def tried(layout: str, **more: object) -> Trial:
    usual: dict[str, object] = {
        "gpu": "A100",
        "width": 4,
        "nodes": 1,
        "local_batch": 8,
        "batch": 32,
    }
    return Trial(layout=layout, **{**usual, **more})  # type: ignore[arg-type]


def best(
    where: Place, sizes: Sizes, *trials: Trial, batch: int = 32, most: int = 32, split: bool = False
) -> Choice:
    return choose(where, sizes, trials, batch=batch, most_local=most, can_split=split)


# Names


@given(layouts)
def test_a_layout_is_found_by_its_name(layout: Layout) -> None:
    if layout.tensor > 1 and layout.shards == "ddp":
        assert layout_named(layout.name) == layout
    assert layout_named(layout.name).name == layout.name


@pytest.mark.parametrize(
    "name", ["", "dp", "fsdp+", "tp1", "tp0", "tp", "ddp+tp2", "recompute+ddp", "FSDP", "fsdp+tp2+"]
)
def test_other_names_are_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=r"parallel: got .* expected .*fsdp"):
        layout_named(name)


@given(layouts, st.integers(1, 16), st.integers(1, 4))
def test_every_width_has_a_layout_near_to_any(layout: Layout, local: int, nodes: int) -> None:
    found = fitting(layout, local * nodes, local)
    assert found.runs_on(local * nodes, local)
    assert found.recompute == layout.recompute
    assert local % found.tensor == 0


@given(st.integers(1, 16), st.integers(1, 4), st.booleans())
def test_all_layouts_of_a_width_run_on_it_and_are_different(
    local: int, nodes: int, can: bool
) -> None:
    found = list(layouts_for(local * nodes, local, can_split=can))
    assert found[0] == Layout()
    assert len(set(found)) == len(found)
    assert all(layout.runs_on(local * nodes, local) for layout in found)
    assert can or all(layout.tensor == 1 for layout in found)


# Memory


@given(layouts, st.integers(1, 16))
def test_sharding_and_splitting_never_take_more_memory_than_ddp(layout: Layout, nodes: int) -> None:
    world = 8 * nodes
    if layout.runs_on(world, 8) and layout.shards != "fsdp-keep":
        assert fixed_bytes(LARGE, layout, world) <= fixed_bytes(LARGE, Layout(), world) + 2 * GB


def test_a_model_that_fits_is_copied_and_one_that_does_not_is_cut() -> None:
    assert best(place(), SMALL).layout.name == "ddp"
    assert best(place(), LARGE).layout.name == "fsdp-keep"
    assert best(place(memory=40 * GB), LARGE).layout.name == "fsdp"


def test_where_nobody_knows_how_much_memory_there_is_everything_fits() -> None:
    assert best(place(memory=0), LARGE).layout.name == "ddp"


def test_what_needs_least_is_tried_where_nothing_fits_and_it_says_so() -> None:
    choice = best(place(world=1, memory=16 * GB), LARGE)
    assert choice.layout == Layout(recompute=True)
    assert choice.local_batch == 1
    assert "80 of 16 GB" in choice.why


# Out of memory


def test_out_of_memory_means_fewer_samples_at_a_time() -> None:
    again = best(place(), SMALL, tried("ddp", out_of_memory=True))
    assert (again.layout.name, again.local_batch) == ("ddp", 4)


def test_a_copied_model_that_ran_out_of_memory_does_so_at_every_width() -> None:
    failed = tried("ddp", width=1, out_of_memory=True)
    wide = best(place(memory=0), SMALL, failed)
    assert wide.layout.name != "ddp" or wide.local_batch <= 4
    cut = tried("fsdp", width=2, out_of_memory=True)
    wide = best(place(memory=0, world=8), SMALL, cut, batch=64)
    assert (wide.layout.name, wide.local_batch) == ("ddp", 8)


def test_out_of_memory_at_one_sample_means_another_layout() -> None:
    trials = [tried("ddp", local_batch=n, out_of_memory=True) for n in (8, 4, 2, 1)]
    again = best(place(), LARGE, *trials)
    assert again.layout.name != "ddp"


@given(st.data())
def test_nothing_runs_out_of_memory_twice_and_there_is_an_end(data: st.DataObject) -> None:
    """Whatever activations really take, on whatever GPUs."""
    each = data.draw(st.floats(0.001 * GB, 8 * GB))
    where = place(world=data.draw(st.sampled_from([1, 2, 4, 8])))
    sizes = data.draw(st.sampled_from([SMALL, LARGE]))
    known: tuple[Trial, ...] = ()
    failed = set()
    for _ in range(200):
        choice = best(where, sizes, *known)
        layout, local = choice.layout, choice.local_batch
        needs = fixed_bytes(sizes, layout, where.world) + each * local * (
            0.3 if layout.recompute else 1.0
        )
        at = replace(tried(layout.name), width=where.world, local_batch=local)
        if needs <= where.memory:
            break
        if "needs least" in choice.why:
            break
        assert (layout, local) not in failed
        failed.add((layout, local))
        known = with_trial(known, replace(at, out_of_memory=True))
    else:
        pytest.fail("no end")


def test_what_was_learned_of_activations_holds_at_other_widths_and_layouts() -> None:
    seen = tried("fsdp", step_s=1.0, peak_bytes=70 * GB)
    each = (70 * GB - fixed_bytes(LARGE, Layout("fsdp"), 4)) / 8
    wide = best(place(world=8), LARGE, seen, batch=64)
    assert wide.layout.cuts
    taken = fixed_bytes(LARGE, wide.layout, 8) + each * wide.local_batch
    assert 0.46 * 80 * GB < taken <= 0.92 * 80 * GB


def test_fewer_samples_than_gpus_means_that_some_split_layers() -> None:
    assert best(place(world=8), SMALL, batch=4, split=True).layout.data_ranks(8) <= 4


# What was measured


def test_an_untried_layout_is_measured_once_and_the_fastest_stays() -> None:
    known = [tried("ddp", step_s=2.0, peak_bytes=10 * GB)]
    second = best(place(), SMALL, *known)
    assert second.layout.name == "fsdp-keep"
    assert "ddp" in second.why
    known.append(tried("fsdp-keep", step_s=1.0, peak_bytes=9 * GB))
    third = best(place(), SMALL, *known)
    assert third.layout.name == "fsdp"
    known.append(tried("fsdp", step_s=1.5, peak_bytes=8 * GB))
    last = best(place(), SMALL, *known)
    assert last.layout.name == "fsdp-keep"
    assert last.why == f"the fastest of {MOST_TRIED} tried here: 32 samples/s"


def test_a_placement_is_judged_by_its_own_times() -> None:
    elsewhere = [
        tried("fsdp", step_s=0.1, width=8),
        tried("fsdp", step_s=0.1, nodes=2),
        tried("fsdp", step_s=0.1, gpu="H100"),
    ]
    assert best(place(), SMALL, *elsewhere).layout.name == "ddp"


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


@pytest.mark.parametrize("layout", ["fsdp+tp8", "fsdp+tp00", "tp٤", "fsdp+tp3"])
def test_a_layout_that_nobody_can_have_tried_says_nothing(layout: str) -> None:
    strange = tried(layout, peak_bytes=1, step_s=1.0)
    assert best(place(), SMALL, strange) == best(place(), SMALL)


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


def test_a_layout_that_a_script_cannot_do_with_is_not_taken_again() -> None:
    assert best(place(), LARGE).layout.name == "fsdp-keep"
    broken = tried("fsdp-keep", broken=True)
    assert best(place(), LARGE, broken).layout.name == "fsdp"


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
