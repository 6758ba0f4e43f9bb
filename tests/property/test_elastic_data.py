"""Every sample once, whatever happens; every step that of one process, however it is cut."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import Dataset

from boa.train.torch.data import Cell, ElasticLoader, Position, cells, order
from boa.train.torch.ranks import Ranks


class Numbers(Dataset[int]):
    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> int:
        return index


@dataclass(frozen=True)
class Stretch:
    """A life at one width: some iterations at each of some sizes, then a crash within the next."""

    world: int
    sizes: tuple[tuple[int, int, int], ...]
    lost: int
    """Cells of the iteration that the crash interrupts which ranks had taken."""


sizes = st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(0, 5))
stretches = st.builds(
    Stretch,
    st.integers(1, 5),
    st.lists(sizes, min_size=1, max_size=3).map(tuple),
    st.integers(0, 4),
)


def job(stretch: Stretch, samples: int, seed: int, position: Position) -> list[ElasticLoader]:
    batch, passes, _ = stretch.sizes[0]
    loaders = []
    for rank in range(stretch.world):
        ranks = Ranks(rank, stretch.world, rank, 1, torch.device("cpu"))
        loader = ElasticLoader(Numbers(samples), ranks, batch=batch, passes=passes, seed=seed)
        loader.position = position
        loaders.append(loader)
    return loaders


def one_iteration(stream: Iterator[tuple[Cell, Any]]) -> Iterator[tuple[Cell, Any]]:
    for cell, batch in stream:
        yield cell, batch
        if cell.last:
            return


def iteration(stream: Iterator[tuple[Cell, Any]]) -> list[tuple[Cell, list[int]]]:
    return [(cell, batch.tolist()) for cell, batch in one_iteration(stream)]


def live(
    stretch: Stretch, samples: int, seed: int, position: Position, seen: Counter[tuple[int, int]]
) -> Position:
    """Train, count what counts, crash; the position that a checkpoint would have kept."""
    loaders = job(stretch, samples, seed, position)
    streams = [loader.stream() for loader in loaders]
    for batch, passes, iterations in stretch.sizes:
        for loader in loaders:
            loader.set_batch(batch, passes)
        for _ in range(iterations):
            at = loaders[0].position
            taken = [iteration(stream) for stream in streams]
            assert len({len(of_rank) for of_rank in taken}) == 1
            assert len({loader.advance() for loader in loaders}) == 1
            total = 0
            for cell, indices in (item for of_rank in taken for item in of_rank):
                assert tuple(indices) == cell.indices
                total += cell.samples
                seen.update((at.number, index) for index in indices[: cell.samples])
            assert total == taken[0][0][0].total == min(batch, samples - at.cursor)
    for stream in streams:  # a crash: what was taken and not advanced over is lost
        list(islice(one_iteration(stream), stretch.lost))
    assert len({loader.position for loader in loaders}) == 1
    return loaders[0].position


@settings(deadline=None, max_examples=60)
@given(
    samples=st.integers(1, 60),
    seed=st.integers(0, 2**64),
    lives=st.lists(stretches, min_size=1, max_size=6),
)
def test_every_sample_of_every_pass_counts_once(
    samples: int, seed: int, lives: list[Stretch]
) -> None:
    seen: Counter[tuple[int, int]] = Counter()
    position = Position()
    for stretch in lives:
        position = live(stretch, samples, seed, position, seen)
    row = order(samples, seed, position.number, True)[: position.cursor].tolist()
    done = {(number, index) for number in range(position.number) for index in range(samples)}
    assert set(seen) == done | {(position.number, index) for index in row}
    assert set(seen.values()) <= {1}


@settings(deadline=None, max_examples=60)
@given(samples=st.integers(1, 40), stretch=stretches, cut=st.integers(0, 10))
def test_a_crash_at_any_cell_loses_only_its_iteration(
    samples: int, stretch: Stretch, cut: int
) -> None:
    whole, crashed = (job(stretch, samples, 3, Position())[-1] for _ in range(2))
    done = 0
    for cell, _ in islice(crashed.stream(), cut):
        if cell.last:
            crashed.advance()
            done += 1
    stream = whole.stream()
    for _ in range(done):
        iteration(stream)
        whole.advance()
    assert whole.position == crashed.position
    again = job(stretch, samples, 3, crashed.position)[-1]
    assert iteration(again.stream()) == iteration(stream)


@given(
    samples=st.integers(1, 200),
    cursor=st.integers(0, 199),
    batch=st.integers(1, 100),
    passes=st.integers(0, 6),
    world=st.integers(1, 8),
)
def test_cells_are_even_and_no_more_than_needed(
    samples: int, cursor: int, batch: int, passes: int, world: int
) -> None:
    row = order(samples, 0, 0, True)
    cursor = cursor % samples
    ranks = [cells(row, cursor, batch, passes, rank, world) for rank in range(world)]
    total = min(batch, samples - cursor)
    (rounds,) = {len(of_rank) for of_rank in ranks}
    counts = [cell.samples for of_rank in ranks for cell in of_rank]
    usual = -(-batch // ((passes + 1) * world))
    assert sum(counts) == total
    assert max(counts) - min(counts) <= 1
    assert max(counts) <= usual
    assert rounds <= passes + 1
    if total == batch and batch >= (passes + 1) * world:
        assert rounds == passes + 1
    if total < batch:
        assert (rounds - 1) * usual * world < total
    assert max(map(total_of, ranks)) - min(map(total_of, ranks)) <= 1
    for of_rank in ranks:
        assert [cell.last for cell in of_rank] == [False] * (rounds - 1) + [True]
        assert all(len(cell.indices) == max(cell.samples, 1) for cell in of_rank)


def total_of(of_rank: list[Cell]) -> int:
    return sum(cell.samples for cell in of_rank)


@settings(deadline=None, max_examples=60)
@given(
    samples=st.integers(1, 50),
    cursor=st.integers(0, 49),
    batch=st.integers(1, 60),
    passes=st.integers(0, 4),
    world=st.integers(1, 6),
)
def test_the_weighted_gradient_is_that_of_one_process(
    samples: int, cursor: int, batch: int, passes: int, world: int
) -> None:
    cursor = cursor % samples
    row = order(samples, 1, 0, True)
    known = torch.Generator().manual_seed(0)
    inputs = torch.randn(samples, 3, generator=known, dtype=torch.float64)
    wanted = torch.randn(samples, 1, generator=known, dtype=torch.float64)
    model = torch.nn.Linear(3, 1, dtype=torch.float64)
    weights = list(model.parameters())

    def gradient(indices: list[int], weight: float) -> torch.Tensor:
        loss = torch.nn.functional.mse_loss(model(inputs[indices]), wanted[indices]) * weight
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss, weights)])

    parts = [
        gradient(list(cell.indices), cell.weight)
        for rank in range(world)
        for cell in cells(row, cursor, batch, passes, rank, world)
    ]
    mean_of_ranks = torch.stack(parts).sum(0) / world
    alone = gradient(row[cursor : cursor + batch].tolist(), 1.0)
    torch.testing.assert_close(mean_of_ranks, alone, rtol=1e-12, atol=1e-13)


@given(samples=st.integers(1, 300), seed=st.integers(0, 2**70), number=st.integers(0, 1000))
def test_an_order_has_every_sample_once(samples: int, seed: int, number: int) -> None:
    assert sorted(order(samples, seed, number, True)) == list(range(samples))


def test_the_order_of_a_pass_never_changes_between_versions_and_machines() -> None:
    assert order(12, 7, 3, True).tolist() == [5, 2, 11, 4, 7, 8, 1, 0, 10, 3, 9, 6]
    assert order(4, 7, 3, False).tolist() == [0, 1, 2, 3]


def test_passes_and_seeds_have_orders_of_their_own() -> None:
    asked = [order(50, seed, number, True).tolist() for seed in (0, 1) for number in (0, 1)]
    assert len({tuple(row) for row in asked}) == 4


def test_a_rank_for_which_nothing_is_left_gets_a_sample_that_counts_for_nothing() -> None:
    found = [cells(order(10, 0, 0, False), 8, 6, 1, rank, 3) for rank in range(3)]
    assert found[0] == [Cell((8,), 1, 1.5, 2, True)]
    assert found[1] == [Cell((9,), 1, 1.5, 2, True)]
    assert found[2] == [Cell((8,), 0, 0.0, 2, True)]
