"""Streams, samplers and made batches: one order for all ranks, from wherever it was left."""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    WeightedRandomSampler,
)
from torchdata.stateful_dataloader import StatefulDataLoader

from boa.train.torch.data import ElasticLoader, Position
from boa.train.torch.evaluating import Evaluation, gathered, total
from boa.train.torch.orders import Orders
from boa.train.torch.ranks import Ranks
from boa.train.torch.sides import Side
from boa.train.torch.streams import StreamLoader, part, size

# torchdata asks torch for something that is on its way out
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
CPU = torch.device("cpu")
ALONE = Ranks(0, 1, 0, 1, CPU)


def rank(number: int, world: int) -> Ranks:
    return Ranks(number, world, number, 1, CPU)


class Numbers(Dataset[int]):
    def __len__(self) -> int:
        return 23

    def __getitem__(self, index: int) -> int:
        return index


class Stream(IterableDataset[float]):
    """Numbers with something random."""

    def __init__(self, count: int = 23) -> None:
        self.count, self.read = count, 0

    def __iter__(self) -> Iterator[float]:
        for number in range(self.count):
            self.read += 1
            yield number + random.random() / 2 + np.random.random() / 4 + torch.rand(()).item() / 8


class Stateful(Stream):
    def __init__(self) -> None:
        super().__init__()
        self.at = 0

    def __iter__(self) -> Iterator[float]:
        while self.at < self.count:
            self.at, self.read = self.at + 1, self.read + 1
            yield self.at + random.random() / 2
        self.at = 0

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


class Iterated:
    """The iterator has the state."""

    def __iter__(self) -> "Iterated.Place":
        return Iterated.Place()

    class Place:
        at = 0

        def __iter__(self) -> "Iterated.Place":
            return self

        def __next__(self) -> float:
            if self.at == 23:
                raise StopIteration
            self.at += 1
            return self.at + random.random() / 2

        def state_dict(self) -> dict[str, int]:
            return {"at": self.at}

        def load_state_dict(self, state: dict[str, int]) -> None:
            self.at = state["at"]


def trained_on(loader: StreamLoader, iterations: int) -> list[float]:
    """Samples that count of so many iterations; a pass that ends is one of 99."""
    found: list[float] = []
    for cell, batch in loader.stream():
        if cell is None:
            found.append(99.0)
            continue
        found += batch[: cell.samples].tolist()
        if cell.last:
            loader.advance()
            iterations -= 1
        if not iterations:
            break
    return found


SOURCES = [Stream, Stateful, Iterated]


@pytest.mark.parametrize("source", SOURCES)
def test_a_stream_goes_on_where_it_was_at_any_width(source: type[Any]) -> None:
    whole = trained_on(StreamLoader(source(), ALONE, batch=6), 9)
    assert [whole.count(99.0), len(whole)] == [2, 9 * 6 - 2 + 2]
    position, state = Position(), None
    seen: list[list[float]] = []
    for world, iterations in ((1, 2), (2, 3), (3, 4)):
        loaders = [StreamLoader(source(), rank(n, world), batch=6) for n in range(world)]
        shares = []
        for loader in loaders:
            loader.position = position
            loader.load(state)
            shares.append(trained_on(loader, iterations))
        position, state = loaders[0].position, loaders[0].state()
        seen.append(sorted(value for share in shares for value in share if value != 99.0))
    firsts = [value for value in whole if value != 99.0]
    assert seen[0] == sorted(firsts[:12])
    assert seen[1] == sorted(firsts[12:29])
    assert seen[2] == sorted(firsts[29:])


def test_only_what_keeps_no_place_is_read_again() -> None:
    for source, read in ((Stream(), 15), (Stateful(), 3)):
        first = StreamLoader(type(source)(), ALONE, batch=6)
        trained_on(first, 2)
        loader = StreamLoader(source, ALONE, batch=3)
        loader.position = first.position
        loader.load(first.state())
        trained_on(loader, 1)
        assert source.read == read


def test_a_state_that_was_loaded_and_not_used_is_saved_again() -> None:
    first = StreamLoader(Stateful(), ALONE, batch=6)
    trained_on(first, 2)
    again = StreamLoader(Stateful(), ALONE, batch=6)
    again.position = first.position
    again.load(first.state())
    assert again.state() == first.state()


def test_a_stream_draws_nothing_from_the_random_numbers_of_training() -> None:
    before = random.getstate(), torch.get_rng_state()
    trained_on(StreamLoader(Stream(), ALONE, batch=6), 6)
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


def test_the_rest_of_a_stream_can_be_left_out() -> None:
    found = trained_on(StreamLoader(Stream(), ALONE, batch=6, drop_last=True), 4)
    assert [int(value) for value in found] == [*range(18), 99, *range(6)]


def stateful(**options: Any) -> Any:
    return StatefulDataLoader(Numbers(), batch_size=6, shuffle=True, **options)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("before", [2, 4])
def test_a_stateful_loader_is_split_over_ranks_and_goes_on(workers: int, before: int) -> None:
    """From within a pass, and from its last batch, when nobody has seen yet that it is over."""
    whole = trained_on(StreamLoader(stateful(num_workers=workers), ALONE, batch=6), 6)
    assert sorted(whole[:23]) == list(range(23))
    assert whole[23] == 99.0
    loader = StreamLoader(stateful(num_workers=workers), ALONE, batch=6)
    assert trained_on(loader, before) == whole[: min(6 * before, 23)]
    state = loader.state()
    shares = []
    for n in (0, 1):
        half = StreamLoader(stateful(num_workers=workers), rank(n, 2), batch=6, passes=1)
        half.position = loader.position
        half.load(state)
        shares += trained_on(half, 6 - before)
    assert sorted(shares) == sorted([*whole[6 * before if before == 2 else 23 :], 99.0])


def test_a_stream_is_read_by_workers_where_somebody_counts() -> None:
    loader = StreamLoader(Stream(), ALONE, batch=6, num_workers=1)
    assert [int(value) for value in trained_on(loader, 2)] == list(range(12))


class Pair(NamedTuple):
    image: torch.Tensor
    name: list[str]


def test_made_batches_are_split_whatever_they_are() -> None:
    image = torch.arange(4)
    batch = {"a": [image, (image, ["w", "x", "y", "z"])], "b": Pair(image, list("abcd"))}
    assert size(batch) == 4
    cut = part(batch, 1, 3)
    assert cut["a"][0].tolist() == [1, 2]
    assert cut["a"][1][1] == ["x", "y"]
    assert cut["b"].name == ["b", "c"]
    with pytest.raises(TypeError, match="a batch is a object"):
        size(object())


REFUSED: list[tuple[str, type[Exception], Any, dict[str, Any]]] = [
    ("expected one that shuffles itself", ValueError, Stream(), {"shuffle": True}),
    ("got a DataLoader, which does not know", TypeError, DataLoader(Numbers()), {}),
    ("batch_size is 6; expected that of all ranks together, 8", ValueError, "made", {"batch": 8}),
    ("timeout: expected it as an option of the loader", ValueError, "made", {"timeout": 3}),
    ("prefetch_factor is not an option", ValueError, Stream(), {"prefetch_factor": 2}),
]


@pytest.mark.parametrize(("said", "kind", "source", "options"), REFUSED)
def test_streams_that_would_go_wrong_are_refused(
    said: str, kind: type[Exception], source: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(kind, match=said):
        StreamLoader(stateful() if source == "made" else source, ALONE, **{"batch": 6, **options})


def test_a_stream_without_samples_is_refused_when_that_is_known() -> None:
    with pytest.raises(ValueError, match="Stream has no samples"):
        trained_on(StreamLoader(Stream(0), ALONE, batch=6), 1)


# Samplers


@pytest.mark.parametrize("generator", [None, torch.Generator()])
def test_a_sampler_draws_the_same_pass_wherever_it_is_asked(
    generator: torch.Generator | None,
) -> None:
    def orders() -> Orders:
        weights = [float(n) for n in range(23)]
        sampler = WeightedRandomSampler(weights, 40, generator=generator)
        return Orders(23, 7, sampler=sampler)

    before = torch.get_rng_state()
    one, other = orders(), orders()
    later = other.row(3).indices.tolist()
    rows = [one.row(number).indices.tolist() for number in range(4)]
    assert rows[3] == later
    assert len({tuple(row) for row in rows}) == 4
    assert 0 not in rows[0]
    assert len(rows[0]) == 40
    assert torch.equal(torch.get_rng_state(), before)


class Epochs(list[int]):
    epoch = -1

    def set_epoch(self, number: int) -> None:
        self[:] = [number] * 3


def test_a_sampler_that_counts_epochs_is_told() -> None:
    assert Orders(23, 0, sampler=Epochs()).row(2).indices.tolist() == [2, 2, 2]


def test_batches_of_a_batch_sampler_are_iterations_whatever_their_size() -> None:
    batches = [[1, 2, 3], [4], list(range(5, 15))]
    loader = ElasticLoader(Numbers(), ALONE, batch=4, passes=1, batch_sampler=batches)
    taken: list[list[int]] = [[]]
    assert (loader.samples, loader.length) == (14, 2 + 1 + 5)
    for cell, batch in loader.stream():
        taken[-1] += batch.tolist()
        assert len(batch) <= 2
        if cell.last and loader.advance():
            break
        if cell.last:
            taken.append([])
    assert taken == batches


def test_a_batch_sampler_is_split_over_ranks_and_gone_on_with() -> None:
    sampler = BatchSampler(RandomSampler(Numbers()), 6, drop_last=False)
    seen = []
    for n in range(3):
        loader = ElasticLoader(Numbers(), rank(n, 3), batch=6, batch_sampler=sampler)
        loader.position = Position(2, 12)
        for cell, batch in loader.stream():
            seen += batch[: cell.samples].tolist()
            if loader.advance():
                break
    row = Orders(23, 0, batch_sampler=sampler).row(2).indices
    assert sorted(seen) == sorted(row[12:].tolist())


def test_samples_that_come_twice_are_not_augmented_alike() -> None:
    class Augmented(Numbers):
        def __getitem__(self, index: int) -> Any:
            return random.random()

    loader = ElasticLoader(Augmented(), ALONE, batch=4, sampler=[5, 5, 5, 5])
    assert len(set(next(loader.stream())[1].tolist())) == 4


def test_drop_last_leaves_a_multiple_of_the_batch() -> None:
    loader = ElasticLoader(Numbers(), ALONE, batch=6, drop_last=True)
    assert (loader.samples, loader.length) == (18, 3)
    with pytest.raises(ValueError, match="drop_last leaves out less than a batch of 24"):
        _ = ElasticLoader(Numbers(), ALONE, batch=24, drop_last=True).samples


def test_samplers_that_cannot_be_split_are_refused_by_type() -> None:
    distributed: DistributedSampler[int] = DistributedSampler(Numbers(), 2, 0)
    for given, said in (
        ({"sampler": distributed}, "got a DistributedSampler, which takes one rank's share"),
        ({"batch_sampler": BatchSampler(distributed, 2, False)}, "got a DistributedSampler"),
        ({"sampler": iter([1])}, "expected an iterable of a known length"),
    ):
        with pytest.raises(TypeError, match=said):
            Orders(23, 0, **given)
    with pytest.raises(ValueError, match="shuffle: got True beside sampler"):
        Orders(23, 0, shuffle=True, sampler=[1])
    with pytest.raises(ValueError, match="sampler: got one beside batch_sampler"):
        Orders(23, 0, sampler=[1], batch_sampler=[[1]])
    with pytest.raises(TypeError, match="sampler: gives no whole numbers"):
        Orders(23, 0, sampler=["x"]).row(0)  # type: ignore[list-item]


# Second loaders


def test_a_batch_drawn_too_early_is_given_again() -> None:
    side = Side(ElasticLoader(Numbers(), ALONE, batch=4, shuffle=False), 4)
    first = side.draw(during=False)
    assert side.draw(during=False) is first
    side.done()
    assert side.data.position == Position(0, 0)
    side.begun()
    side.done()
    assert side.data.position == Position(0, 4)
    assert side.draw(during=True).tolist() == [4, 5, 6, 7]
    assert side.draw(during=True).tolist() == [8, 9, 10, 11]
    assert side.data.position == Position(0, 8)


def test_a_second_stream_begins_again_and_is_kept_where_it_was() -> None:
    side = Side(StreamLoader(Stateful(), ALONE, batch=12), 12)
    for _ in range(3):
        side.draw(during=True)
        side.done()
    assert side.data.position == Position(1, 12)
    kept = side.state()
    early = side.draw(during=False)
    assert side.state() == kept
    other = Side(StreamLoader(Stateful(), ALONE, batch=12), 12)
    other.load(kept)
    assert torch.equal(other.draw(during=True), early)


# Evaluation


def test_shares_of_an_evaluation_are_all_of_it() -> None:
    for world in (1, 2, 5, 30):
        shares = [
            [
                int(number)
                for batch in Evaluation(Numbers(), rank(n, world), (), batch_size=4)
                for number in batch
            ]
            for n in range(world)
        ]
        assert [number for share in shares for number in share] == list(range(23))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_an_evaluation_takes_every_sample_and_says_so() -> None:
    with pytest.raises(TypeError, match="got a Stream; expected a map-style data set"):
        Evaluation(Stream(), ALONE, (), batch_size=4)
    with pytest.raises(ValueError, match="drop_last is not an option of an evaluation"):
        Evaluation(Numbers(), ALONE, (), batch_size=4, drop_last=True)


def test_sums_are_of_numbers_and_tensors() -> None:
    assert total(3, ALONE) == 3
    assert total(torch.tensor([1, 2], dtype=torch.int8), ALONE).dtype == torch.int64
    assert gathered([1], ALONE) == [1]
    with pytest.raises(TypeError, match="total: got a str"):
        total("3", ALONE)
    with pytest.raises(TypeError, match="gather: got a int"):
        gathered(3, ALONE)
