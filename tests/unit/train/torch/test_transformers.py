"""Which trainers can be elastic, and what the arguments for one GPU mean on several."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Trainer, TrainingArguments

from boa.train.torch.transformers import ElasticTraining, elastic
from elastic import Attempt, play


def test_a_trainer_that_leaves_its_loop_to_transformers_can_be_elastic() -> None:
    class Tuning(Trainer):  # type: ignore[misc]
        def compute_loss(self, *given: Any, **named: Any) -> Any:
            return super().compute_loss(*given, **named)

    made = elastic(Tuning)
    assert made.__name__ == "ElasticTuning"
    assert made.__mro__[1:3] == (ElasticTraining, Tuning)


def test_one_that_draws_its_own_data_is_refused_by_name() -> None:
    class Reinforcing(Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return None

    with pytest.raises(TypeError, match="Reinforcing has a get_train_dataloader of its own"):
        elastic(Reinforcing)
    with pytest.raises(TypeError, match=r"expected a subclass of transformers\.Trainer"):
        elastic(dict)


def sizes(_interrupt: Callable[[int], None], out: str, per_device: int, accumulated: int) -> Any:
    from boa.train.torch.transformers import ElasticTrainer

    args = TrainingArguments(
        output_dir=out,
        per_device_train_batch_size=per_device,
        gradient_accumulation_steps=accumulated,
        report_to="none",
        use_cpu=True,
    )
    trainer = ElasticTrainer(model=torch.nn.Linear(1, 1), args=args)
    return {
        "own": (args.per_device_train_batch_size, args.gradient_accumulation_steps),
        "batch": trainer._companion.batch_size,
    }


@pytest.mark.slow
@pytest.mark.parametrize(("width", "own"), [(1, (8, 4)), (2, (8, 2)), (3, (6, 2))])
def test_the_batch_is_the_same_at_every_width_and_no_gpu_takes_more(
    tmp_path: Path, width: int, own: tuple[int, int]
) -> None:
    given = {"out": str(tmp_path / "out"), "per_device": 8, "accumulated": 4}
    (ended,) = play(sizes, tmp_path, [Attempt(width)], **given)
    assert [told["own"] for told in ended.told] == [own] * width
    assert {told["batch"] for told in ended.told} == {32}
