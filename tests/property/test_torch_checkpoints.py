"""Any state that a training may have is shared out whole, and comes back as it was."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.train import Progress
from boa.train.torch import storage
from boa.train.torch.checkpoint import Checkpointer
from boa.train.torch.ranks import Ranks
from checkpoint_ranks import same

CPU = torch.device("cpu")
TYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
names = st.sampled_from(["a", "b", "weight", "layer.0.bias", "0"])
shapes = st.lists(st.integers(0, 5), max_size=3)


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    """Of all kinds: scalars, empty ones, views of larger ones."""
    made = torch.randint(0, 2, [2, *draw(shapes)]).to(draw(st.sampled_from(TYPES)))
    view = made[draw(st.integers(0, 1))]
    return view.transpose(0, -1) if view.ndim > 1 and draw(st.booleans()) else view


values = st.one_of(
    tensors(),
    st.floats(allow_nan=False),
    st.none(),
    st.lists(st.dictionaries(names, st.integers(), max_size=2), min_size=1, max_size=2),
)
states = st.dictionaries(
    names, st.one_of(values, st.dictionaries(names, values, min_size=1)), min_size=1
)


def other(state: Any) -> Any:
    """Of the same form, with nothing of the same in it."""
    if isinstance(state, dict):
        return {key: other(value) for key, value in state.items()}
    if isinstance(state, list):
        return [other(value) for value in state]
    return torch.zeros_like(state) if isinstance(state, torch.Tensor) else "other"


@settings(max_examples=25, deadline=None)
@given(state=states, wait=st.booleans())
def test_whatever_is_saved_is_loaded_to_the_bit(state: dict[str, Any], wait: bool) -> None:
    with TemporaryDirectory() as home:
        saver = Checkpointer(Path(home), Ranks(0, 1, 0, 1, CPU))
        at = Progress(2, 0.5, 9)
        saver.save(tensors=state, shared={"x": [1]}, own={}, progress=at, wait=wait)
        saver.finish()
        target = other(state)
        loaded = saver.load(target)
        assert loaded is not None
        assert (loaded.progress, loaded.shared, loaded.own) == (at, {"x": [1]}, {})
        assert same(target, state)


@given(sizes=st.lists(st.integers(0, 6 << 20), max_size=20), ranks=st.integers(1, 5))
def test_every_tensor_has_one_rank_to_write_it_and_small_ones_have_rank_0(
    sizes: list[int], ranks: int
) -> None:
    state = {str(n): torch.empty(size, dtype=torch.uint8) for n, size in enumerate(sizes)}
    shares = [storage.Draft(dict(state), Ranks(r, ranks, r, 1, CPU)).values for r in range(ranks)]
    assert sorted(name for share in shares for name in share) == sorted(state)
    small = {name for name, value in state.items() if value.nbytes < storage.SPREAD_BYTES}
    assert small <= shares[0].keys()
    large = [sum(share[name].nbytes for name in share.keys() - small) for share in shares]
    assert max(large) - min(large) <= max([0, *sizes]) + len(sizes)
