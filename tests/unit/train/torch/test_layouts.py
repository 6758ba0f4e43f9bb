"""Which layout comes next: by memory, by what was measured, and by what ran out of memory."""

import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from boa.model.layouts import Trial, with_trial
from boa.train.torch.layout.choosing import MOST_TRIED, Choice, Place, choose
from boa.train.torch.layout.layouts import Layout, fitting, layout_named, layouts_for
from boa.train.torch.layout.needs import Sizes, fixed_bytes
from boa.train.torch.ranks import Ranks
from boa.train.torch.sizing import Sizing
from layout_job import Net, tried

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


@pytest.mark.parametrize("layout", ["fsdp+tp8", "fsdp+tp00", "tp٤", "fsdp+tp3"])
def test_a_layout_that_nobody_can_have_tried_says_nothing(layout: str) -> None:
    strange = tried(layout, peak_bytes=1, step_s=1.0)
    assert best(place(), SMALL, strange) == best(place(), SMALL)


def test_a_layout_that_a_script_cannot_do_with_is_not_taken_again() -> None:
    assert best(place(), LARGE).layout.name == "fsdp-keep"
    broken = tried("fsdp-keep", broken=True)
    assert best(place(), LARGE, broken).layout.name == "fsdp"


def test_a_batch_that_may_grow_is_given_room_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOA_CHECKPOINT_DIR", raising=False)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # to be as it was
    alone = Ranks(0, 1, 0, 1, torch.device("cpu"))
    sizing = Sizing(alone, batch_size=8, max_batch=64, local_batch=(1, 32), exact=False)
    sizing.arrange(Net, "auto", None)
    assert sizing.limits.max_local == 32
    rigid = Sizing(alone, batch_size=8, max_batch=None, local_batch=None, exact=False)
    rigid.arrange(Net, "auto", None)
    assert rigid.begin() == (8, 0)
