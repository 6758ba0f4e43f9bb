"""What `resume` takes is sorted by type, and what it does not take is refused by type."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import TensorDataset

from boa.train.torch import Elastic, states
from boa.train.torch.given import is_plain, sorted_by_type
from boa.train.torch.kept import Kept
from boa.train.torch.layout.layouts import Layout
from boa.train.torch.ranks import Ranks
from boa.train.torch.replicas import Replica
from boa.train.torch.wrapping import plain
from elastic import Attempt, play

ALONE = Ranks(0, 1, 0, 1, torch.device("cpu"))


def replica(model: nn.Module) -> Replica:
    return Replica(model, ALONE, layout=Layout(), find_unused=False, exact=False)


def optimizer(*models: nn.Module) -> SGD:
    return SGD([p for model in models for p in model.parameters()], lr=0.1)


class First(nn.Linear):
    def __init__(self) -> None:
        super().__init__(2, 2)


class Second(First):
    pass


def test_two_optimisers_are_two_optimisers_and_no_scheduler() -> None:
    one, two = First(), Second()
    opt_1, opt_2 = optimizer(one), optimizer(two)
    schedulers = [torch.optim.lr_scheduler.StepLR(each, 1) for each in (opt_1, opt_2)]
    replicas = [replica(one), replica(two)]
    for parts in (
        (one, two, opt_1, opt_2, *schedulers),
        ([one, two], [opt_1, opt_2], schedulers),
        (one, opt_1, schedulers[0], two, opt_2, schedulers[1]),
    ):
        given = sorted_by_type(parts, {}, replicas)
        assert given.models == (one, two)
        assert given.optimizers == (opt_1, opt_2)
        assert given.keeps == {"scheduler": schedulers[0], "scheduler_2": schedulers[1]}
        assert sorted(given.root.state_dict()) == ["1.bias", "1.weight", "2.bias", "2.weight"]


def test_what_is_given_by_name_goes_by_type_too() -> None:
    model = First()
    opt, scaler = optimizer(model), torch.amp.GradScaler("cpu")
    ema, scheduler = AveragedModel(model), torch.optim.lr_scheduler.StepLR(opt, 1)
    named = {"optimizer": opt, "scheduler": scheduler, "scaler": scaler, "ema": ema, "best": 0.0}
    given = sorted_by_type([model], named, [replica(model)])
    assert given.optimizers == (opt,)
    assert given.scaler is scaler
    assert given.keeps == {"scheduler": scheduler, "scaler": scaler, "ema": ema}
    assert given.values == {"best": 0.0}
    assert sorted(given.root.state_dict()) == ["bias", "weight"]
    assert sorted_by_type([model, opt, scaler], {}, [replica(model)]).scaler is scaler
    assert sorted_by_type([model, opt, None], {"scaler": None}, [replica(model)]).keeps == {}


Case = tuple[str, Callable[[First, Second], tuple[tuple[Any, ...], dict[str, Any]]]]
REFUSED: list[Case] = [
    ("got a float without a name", lambda a, b: ((a, b, optimizer(a, b), 0.5), {})),
    ("best: got a set", lambda a, b: ((a, b, optimizer(a, b)), {"best": {1}})),
    ("no optimiser has parameters of Second", lambda a, b: ((a, b, optimizer(a)), {})),
    ("Second was given to wrap.* and is missing", lambda a, b: ((a, optimizer(a)), {})),
    ("got no optimiser", lambda a, b: ((a, b), {})),
    ("got no model", lambda a, b: ((optimizer(a, b),), {})),
    (
        "AveragedModel that wrap.* has not seen; .*by? ?.*ema=",
        lambda a, b: ((a, b, optimizer(a, b), AveragedModel(a)), {}),
    ),
    (
        "1.weight of Sequential is in no model given to wrap",
        lambda a, b: ((nn.Sequential(a, nn.Linear(2, 1)), b, optimizer(a, b)), {}),
    ),
    (
        "SGD has parameters of no model given",
        lambda a, b: ((a, b, optimizer(a, b, nn.Linear(2, 2))), {}),
    ),
]


@pytest.mark.parametrize(("said", "made"), REFUSED)
def test_what_would_not_train_everywhere_is_refused_where_it_is_said(
    said: str, made: Callable[[First, Second], tuple[tuple[Any, ...], dict[str, Any]]]
) -> None:
    one, two = First(), Second()
    parts, named = made(one, two)
    with pytest.raises(TypeError, match=said):
        sorted_by_type(parts, named, [replica(one), replica(two)])


def test_a_model_that_is_frozen_needs_no_optimiser() -> None:
    one, two = First(), Second().requires_grad_(False)
    sorted_by_type([one, two, optimizer(one)], {}, [replica(one), replica(two)])


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (0.0, True),
        ("x", True),
        (None, True),
        ([1, {"a": (2.0,)}], True),
        (torch.ones(2), True),
        (object(), False),
        ([{1}], False),
        ({(): 1}, False),
    ],
)
def test_plain_values_are_numbers_text_tensors_and_containers_of_them(
    value: object, kept: bool
) -> None:
    assert is_plain(value) == kept


def test_kept_values_are_attributes_and_no_others_can_be_made() -> None:
    kept = Kept({"best": 0.0, "seen": [1]})
    kept.best = 0.5
    kept.load_state_dict({"seen": [1, 2], "gone": 3})
    assert (kept.best, kept.seen) == (0.5, [1, 2])
    assert repr(kept) == "Kept(best=0.5, seen=[1, 2])"
    with pytest.raises(AttributeError, match=r"kept.bset: was not given to resume.*best, seen"):
        kept.bset = 1.0
    with pytest.raises(AttributeError, match="gone"):
        _ = kept.gone
    with pytest.raises(TypeError, match=r"kept\.best: got a object"):
        kept.best = object()


# Names


@pytest.mark.parametrize("before", ["module.", "_orig_mod.", "module._orig_mod."])
def test_what_was_saved_with_a_wrapper_around_it_is_still_read(before: str) -> None:
    model = replica(nn.Sequential(First(), nn.Linear(2, 1))).model
    average, holder = AveragedModel(model), nn.ModuleDict({"net": model})
    for module, place in ((model, ""), (average, "module."), (holder, "net.")):
        saved = {
            place + before + name[len(place) :] if name.startswith(place) else name: value + 1
            for name, value in module.state_dict().items()
            if name != "n_averaged"
        }
        if module is average:
            saved["n_averaged"] = average.n_averaged
        module.load_state_dict(saved)


def test_a_part_that_is_called_module_keeps_its_name() -> None:
    model = replica(nn.ModuleDict({"module": First()})).model
    saved = {name: value + 1 for name, value in model.state_dict().items()}
    assert sorted(saved) == ["module.bias", "module.weight"]
    model.load_state_dict(saved)
    assert torch.equal(model.state_dict()["module.bias"], saved["module.bias"])


def test_the_model_within_a_compiled_one_has_the_names() -> None:
    model = First()
    compiled: Any = torch.compile(model, backend="eager")
    assert plain(compiled) is model
    assert plain(model) is model


# States of several optimisers


def test_optimisers_that_share_parameters_are_kept_apart() -> None:
    one, two = First(), Second()
    both = nn.ModuleDict({"1": one, "2": two})
    optimizers = [torch.optim.Adam(each) for each in (one.parameters(), two.parameters())]
    optimizers.append(torch.optim.Adam(both.parameters(), lr=0.5))
    for turn, each in enumerate(optimizers, 1):
        for _ in range(turn):
            sum(p.sum() for p in both.parameters()).backward()  # type: ignore[union-attr]
            each.step()
            each.zero_grad()
    saved = states.taken(both, optimizers)
    assert sorted(saved) == ["model", "optimizer", "optimizer_2"]
    others = [torch.optim.Adam(each) for each in (one.parameters(), two.parameters())]
    others.append(torch.optim.Adam(both.parameters(), lr=0.1))
    states.give(both, others, saved)
    counts = [{float(state["step"]) for state in each.state.values()} for each in others]
    assert counts == [{1.0}, {2.0}, {3.0}]
    assert others[2].param_groups[0]["lr"] == 0.5


def test_asking_for_what_is_saved_is_no_step() -> None:
    model = First()
    adam = torch.optim.Adam(model.parameters())
    states.taken(model, [adam])
    assert not adam.state
    assert all(p.grad is None for p in model.parameters())


# What step and backward refuse


def wrong_steps(_interrupt: Callable[[int], None]) -> dict[str, Any]:
    said: dict[str, str] = {}

    def attempt(name: str, use: Callable[[], object]) -> None:
        try:
            use()
        except (RuntimeError, TypeError, ValueError) as problem:
            said[name] = str(problem)

    run = Elastic(batch_size=8, local_batch=(1, 4))
    one, two = run.wrap(First), run.wrap(Second)
    opt_1, opt_2 = optimizer(one), optimizer(two)
    attempt("wrap", lambda: run.wrap(lambda: 3))  # type: ignore[arg-type, return-value]
    batches = run.loader(TensorDataset(torch.ones(32, 2)))
    run.resume(one, two, opt_1, opt_2)
    attempt("late", lambda: run.wrap(First))
    next(run.epochs(1))
    (x,) = next(iter(batches))
    attempt("which", lambda: run.step(one(x).sum()))
    attempt("whose", lambda: run.step(one(x).sum(), optimizer=optimizer(one)))
    attempt("what", lambda: run.step(optimizer=opt_1))
    run.step(one(x).sum(), optimizer=[opt_1, opt_2])
    for (x,) in batches:
        run.backward(one(x).sum(), optimizer=opt_1)
        attempt("accumulated", lambda: next(iter(batches)))
        if said.get("accumulated"):
            break
    return said


def test_steps_that_cannot_be_meant_are_refused_in_words(tmp_path: Path) -> None:
    (ended,) = play(wrong_steps, tmp_path, [Attempt(1)])
    said = ended.told[0]
    assert "got a int; expected an nn.Module" in said["wrap"]
    assert "wrap() after resume()" in said["late"]
    assert "given 2 optimisers; expected optimizer=" in said["which"]
    assert "got optimizer=SGD, which was not given to resume()" in said["whose"]
    assert "step() without a loss" in said["what"]
    assert "backward() without step()" in said["accumulated"]
