"""Layouts of a model on real ranks: each trains as one process does, and goes on as another."""

import json
from pathlib import Path

import pytest
import torch

from boa.model.exit_codes import AGAIN
from boa.model.layouts import Trial, trials_of
from boa.train.torch.layout.journal import FILE
from elastic import Attempt, Ended, play
from layout_job import batch_norm, by_hand, copied_first, train, train_llama

ROUNDING = 2e-5


def _same(pieces: Ended, whole: Ended) -> None:
    expected = whole.told[0]
    assert set(pieces.codes) == {0}
    for found in pieces.told:
        for name, wanted in expected["weights"].items():
            torch.testing.assert_close(
                found["weights"][name], wanted, rtol=ROUNDING, atol=ROUNDING, msg=name
            )
        done = found["losses"]
        torch.testing.assert_close(done, expected["losses"][-len(done) :], rtol=ROUNDING, atol=0)


@pytest.mark.slow
def test_any_layout_goes_on_as_any_other_with_the_losses_of_one_process(tmp_path: Path) -> None:
    clip = 0.5
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)], layouts={1: "ddp"}, clip=clip)
    steps = [
        (2, "fsdp"),
        (2, "ddp"),
        (2, "tp2"),
        (4, "fsdp+tp2+recompute"),
        (2, "fsdp-keep"),
        (1, "ddp+recompute"),
        (4, "tp4"),
    ]
    attempts = [Attempt(width, 3 * n, width - 1) for n, (width, _) in enumerate(steps[:-1], 1)]
    layouts = {n: name for n, (_, name) in enumerate(steps, 1)}
    ends = play(train, tmp_path / "pieces", [*attempts, Attempt(4)], layouts=layouts, clip=clip)
    _same(ends[-1], whole)


@pytest.mark.slow
def test_a_layout_that_the_width_does_not_allow_is_the_nearest_that_it_does(
    tmp_path: Path,
) -> None:
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)], layouts={1: "tp4"})
    (narrow,) = play(train, tmp_path / "narrow", [Attempt(2)], layouts={1: "tp4"})
    _same(narrow, whole)


@pytest.mark.slow
def test_ranks_that_split_layers_draw_the_same_random_numbers(tmp_path: Path) -> None:
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)], layouts={1: "ddp"}, dropout=0.2)
    (split,) = play(train, tmp_path / "split", [Attempt(2)], layouts={1: "tp2"}, dropout=0.2)
    _same(split, whole)


@pytest.mark.slow
def test_out_of_memory_is_learned_and_the_next_run_takes_less_at_a_time(tmp_path: Path) -> None:
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)], layouts={1: "ddp"})
    auto = dict.fromkeys((1, 2, 3), "auto")
    first, second, third = play(
        train, tmp_path / "pieces", [Attempt(1), Attempt(1), Attempt(1)], layouts=auto, room=2
    )
    assert [ended.codes for ended in (first, second)] == [[AGAIN], [AGAIN]]
    _same(third, whole)
    trials = trials_of(json.loads((tmp_path / "pieces/checkpoints" / FILE).read_text()))
    assert [(trial.local_batch, trial.out_of_memory) for trial in trials] == [(8, True), (4, True)]


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2])
def test_the_layout_chosen_by_itself_trains_as_any(tmp_path: Path, width: int) -> None:
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)], layouts={1: "ddp"})
    (chosen,) = play(train, tmp_path / "auto", [Attempt(width)], layouts={1: "auto"})
    _same(chosen, whole)


@pytest.mark.slow
def test_a_model_of_transformers_says_itself_how_its_layers_are_split(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (whole,) = play(train_llama, tmp_path / "whole", [Attempt(1)], parallel="ddp")
    (split,) = play(train_llama, tmp_path / "split", [Attempt(2)], parallel="tp2")
    _same(split, whole)


@pytest.mark.slow
def test_steps_by_hand_are_refused_where_the_layout_is_ours_to_choose(tmp_path: Path) -> None:
    (ended,) = play(by_hand, tmp_path, [Attempt(1)])
    assert "parallel='auto'" in ended.told[0]["refused"]


@pytest.mark.slow
def test_a_script_that_fails_in_a_layout_before_its_first_step_is_laid_out_otherwise(
    tmp_path: Path,
) -> None:
    home = tmp_path / "checkpoints"
    home.mkdir()
    rows = [
        Trial(gpu="", width=2, nodes=1, layout=name, local_batch=n, out_of_memory=True).as_row()
        for name in ("ddp",)
        for n in (4, 2, 1)
    ]
    (home / FILE).write_text(json.dumps(rows))
    first, second = play(copied_first, tmp_path, [Attempt(2), Attempt(2)])
    assert set(first.codes) & {AGAIN}
    found = trials_of(json.loads((home / FILE).read_text()))
    assert [trial.layout for trial in found if trial.broken] == ["fsdp-keep"]
    assert set(second.codes) != {0}, "nothing is left that it can do with but what needs least"


@pytest.mark.slow
def test_all_ranks_evaluate_a_model_in_shards_with_the_same_statistics(tmp_path: Path) -> None:
    (sharded,) = play(batch_norm, tmp_path / "sharded", [Attempt(2)], parallel="fsdp")
    (whole,) = play(batch_norm, tmp_path / "whole", [Attempt(2)], parallel="ddp")
    values = [told["value"] for told in (*sharded.told, *whole.told)]
    assert values == pytest.approx([values[0]] * 4, rel=ROUNDING)


@pytest.mark.slow
def test_layers_of_a_compiled_model_are_split_by_their_own_names(tmp_path: Path) -> None:
    (whole,) = play(train, tmp_path / "whole", [Attempt(1)], layouts={1: "ddp"})
    (split,) = play(train, tmp_path / "split", [Attempt(2)], layouts={1: "tp2"}, compiled=True)
    _same(split, whole)
