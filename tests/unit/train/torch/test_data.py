"""The elastic loader with real worker processes, signals and ranks."""

import ast
import os
import random
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, Subset, get_worker_info

from boa.train.torch.data import ElasticLoader, Position, moved, order
from boa.train.torch.ranks import Ranks
from local_runs import until

ALONE = Ranks(0, 1, 0, 1, torch.device("cpu"))
META = torch.device("meta")


class Augmented(Dataset[torch.Tensor]):
    """Each sample with one number from every source of randomness that people use."""

    opened = 0.0

    def __len__(self) -> int:
        return 23

    def __getitem__(self, index: int) -> torch.Tensor:
        drawn = [random.random(), np.random.random(), torch.rand(()).item()]
        return torch.tensor([index, *drawn, self.opened], dtype=torch.float64)


class Batched(Augmented):
    def __getitems__(self, indices: list[int]) -> list[torch.Tensor]:
        return [self[index] for index in reversed(indices)]


class Endless(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


class Pair(NamedTuple):
    image: torch.Tensor
    name: str


def rows(loader: ElasticLoader, iterations: int) -> torch.Tensor:
    """All samples that count of so many iterations."""
    found, done = [], 0
    for cell, batch in loader.stream():
        found.append(batch[: cell.samples])
        if cell.last:
            loader.advance()
            done += 1
        if done == iterations:
            break
    return torch.cat(found)


@pytest.mark.parametrize("option", ["batch_size", "generator", "in_order"])
def test_an_option_that_is_decided_here_is_refused_by_name(option: str) -> None:
    with pytest.raises(ValueError, match=f"^{option} is not an option of an elastic loader: "):
        ElasticLoader(Augmented(), ALONE, batch=4, **{option: 1})  # type: ignore[arg-type]


def test_data_that_cannot_be_begun_anywhere_is_refused() -> None:
    with pytest.raises(TypeError, match="Endless is no data set"):
        ElasticLoader(Endless(), ALONE, batch=4)
    with pytest.raises(ValueError, match="empty"):
        ElasticLoader(Subset(Augmented(), []), ALONE, batch=4)


def test_sizes_and_positions_that_make_no_sense_are_refused() -> None:
    loader = ElasticLoader(Augmented(), ALONE, batch=4)
    with pytest.raises(ValueError, match="batch 0"):
        loader.set_batch(0, 0)
    with pytest.raises(ValueError, match="23 samples: is it the one"):
        loader.position = Position(0, 23)
    with pytest.raises(ValueError, match="seed is -1"):
        ElasticLoader(Augmented(), ALONE, batch=4, seed=-1)


def test_tensors_are_moved_wherever_they_are() -> None:
    tensor = torch.zeros(2)
    batch = {"a": [tensor, (tensor, "x")], "b": Pair(tensor, "y"), "n": 3}
    there = moved(batch, META)
    assert there["a"][0].device == there["a"][1][0].device == there["b"].image.device == META
    assert (there["a"][1][1], there["b"].name, there["n"]) == ("x", "y", 3)
    assert isinstance(there["b"], Pair)
    packed = torch.nn.utils.rnn.pack_sequence([tensor])
    assert isinstance(moved(packed, META), torch.nn.utils.rnn.PackedSequence)


def test_batches_come_on_the_device_of_the_rank() -> None:
    loader = ElasticLoader(Augmented(), Ranks(0, 1, 0, 1, META), batch=4)
    assert next(loader.stream())[1].device == META


def test_a_new_size_counts_from_the_next_iteration_and_loses_nothing() -> None:
    loader = ElasticLoader(Augmented(), ALONE, batch=6, passes=1, num_workers=2)
    stream = loader.stream()
    first, _ = next(stream)
    loader.set_batch(5, 0)  # within an iteration
    second, _ = next(stream)
    assert (first.total, second.total, second.last) == (6, 6, True)
    assert not loader.advance()
    assert loader.position == Position(0, 6)
    third, batch = next(stream)
    assert (third.total, third.last, third.indices) == (5, True, tuple(batch[:, 0].int().tolist()))
    loader.set_batch(23, 0)  # after it, but before it is done
    assert not loader.advance()
    fourth, _ = next(stream)
    assert fourth.total == 12
    assert loader.advance()
    assert loader.position == Position(1, 0)
    whole = first.indices + second.indices + third.indices + fourth.indices
    assert whole == tuple(order(23, 0, 0, True).tolist())


class Workers(Augmented):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(os.getpid())


def test_the_same_workers_serve_every_size_position_and_stream() -> None:
    loader = ElasticLoader(Workers(), ALONE, batch=4, num_workers=2)
    pids = set(rows(loader, 8).tolist())
    loader.set_batch(3, 1)
    pids |= set(rows(loader, 8).tolist())
    loader.position = Position(4, 2)
    pids |= set(rows(loader, 8).tolist())
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_going_on_without_advancing_is_an_error() -> None:
    loader = ElasticLoader(Augmented(), ALONE, batch=4, passes=1)
    stream = loader.stream()
    next(stream)
    with pytest.raises(RuntimeError, match="after the last cell"):
        loader.advance()
    next(stream)
    with pytest.raises(RuntimeError, match=r"call advance\(\)"):
        next(stream)


def test_a_stream_ends_where_a_newer_one_begins() -> None:
    loader = ElasticLoader(Augmented(), ALONE, batch=4)
    old, new = loader.stream(), loader.stream()
    next(old)
    assert next(new)[0].indices == tuple(order(23, 0, 0, True)[:4].tolist())
    loader.advance()
    with pytest.raises(RuntimeError, match="newer stream"):
        next(old)


def test_a_position_set_while_streaming_is_where_it_goes_on() -> None:
    loader = ElasticLoader(Augmented(), ALONE, batch=4, num_workers=1)
    stream = loader.stream()
    next(stream)
    loader.position = Position(2, 9)
    cell, batch = next(stream)
    assert cell.indices == tuple(order(23, 0, 2, True)[9:13].tolist())
    assert tuple(batch[:, 0].int().tolist()) == cell.indices


@pytest.mark.parametrize("workers", [0, 2])
def test_loading_draws_nothing_from_the_random_numbers_of_training(workers: int) -> None:
    def state() -> tuple[Any, ...]:
        numpy_state = [str(part) for part in np.random.get_state()]
        return random.getstate(), numpy_state, torch.get_rng_state().tolist()

    before = state()
    rows(ElasticLoader(Augmented(), ALONE, batch=4, num_workers=workers), 8)
    assert state() == before


def test_augmentation_is_the_same_at_every_width_with_workers_and_after_a_restart() -> None:
    whole = rows(ElasticLoader(Augmented(), ALONE, batch=6), 8)
    wide: Counter[tuple[float, ...]] = Counter()
    for rank in range(3):
        ranks = Ranks(rank, 3, rank, 1, torch.device("cpu"))
        loader = ElasticLoader(Augmented(), ranks, batch=6, passes=1, num_workers=2)
        wide.update(tuple(row) for row in rows(loader, 8).tolist())
    assert wide == Counter(tuple(row) for row in whole.tolist())
    restarted = ElasticLoader(Augmented(), ALONE, batch=6, num_workers=1)
    restarted.position = Position(0, 12)
    assert torch.equal(rows(restarted, 6), whole[12:])
    assert len(set(whole[:, 1].tolist())) == len(whole) == 46


def test_a_data_set_that_reads_many_at_once_still_does() -> None:
    loader = ElasticLoader(Subset(Batched(), list(range(23))), ALONE, batch=4)
    cell, batch = next(loader.stream())
    assert tuple(batch[:, 0].int().tolist()) == cell.indices[::-1]


def test_the_users_worker_init_sees_the_users_data_set() -> None:
    loader = ElasticLoader(
        Augmented(), ALONE, batch=4, num_workers=1, worker_init_fn=open_in_worker
    )
    assert next(loader.stream())[1][:, 4].tolist() == [1.0] * 4


def open_in_worker(worker: int) -> None:
    info = get_worker_info()
    assert info is not None
    info.dataset.opened = 1.0  # type: ignore[attr-defined]


# A job in processes of its own.

HEAD = """
import os, signal, sys, time
import torch
from torch.utils.data import Dataset
from boa.train.stopping import listen, stop_requested
from boa.train.torch.data import ElasticLoader, Position
from boa.train.torch.ranks import Ranks, join

ALONE = Ranks(0, 1, 0, 1, torch.device("cpu"))

class Data(Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, index):
        return torch.tensor([index, os.getpid()])
"""


@contextmanager
def script(folder: Path, text: str) -> Iterator[subprocess.Popen[str]]:
    """It runs in a session of its own, of which nothing is left afterwards."""
    path = folder / "job.py"
    path.write_text(HEAD + textwrap.dedent(text))
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    with process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.slow
def test_workers_outlive_a_stop_of_the_whole_job_and_end_with_it(tmp_path: Path) -> None:
    text = """
    listen()
    loader = ElasticLoader(Data(), ALONE, batch=4, num_workers=2)
    after, pids = 0, set()
    for cell, batch in loader.stream():
        loader.advance()
        pids |= set(batch[:, 1].tolist())
        print("running", flush=True)
        if stop_requested():
            after += 1
        if after == 200:
            break
    assert len(pids) == 2
    print("saved", loader.position.number > 0, flush=True)
    sys.exit(0)
    """
    with script(tmp_path, text) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        for _ in range(5):
            os.killpg(process.pid, signal.SIGTERM)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
        assert output.endswith("saved True\n")
        until(lambda: gone(process.pid))


@pytest.mark.slow
def test_a_stop_while_workers_begin_kills_none(tmp_path: Path) -> None:
    text = """
    listen()
    os.register_at_fork(after_in_child=lambda: os.killpg(os.getpgrp(), signal.SIGTERM))
    loader = ElasticLoader(Data(), ALONE, batch=4, num_workers=2)
    stream = loader.stream()
    for _ in range(100):
        next(stream)
        loader.advance()
    print("stopped", stop_requested(), flush=True)
    """
    with script(tmp_path, text) as process:
        output, _ = process.communicate(timeout=300)
        assert (process.returncode, output) == (0, "stopped True\n")
        until(lambda: gone(process.pid))


@pytest.mark.slow
def test_a_worker_that_is_stuck_does_not_keep_the_job(tmp_path: Path) -> None:
    text = """
    class Stuck(Data):
        def __getitem__(self, index):
            if index == 50:
                time.sleep(1000)
            return super().__getitem__(index)

    listen()
    loader = ElasticLoader(Stuck(), ALONE, batch=10, shuffle=False, num_workers=1)
    stream = loader.stream()
    for _ in range(5):
        next(stream)
        loader.advance()
    print("last", flush=True)
    """
    with script(tmp_path, text) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "last\n"
        os.killpg(process.pid, signal.SIGTERM)
        output, _ = process.communicate(timeout=300)
        assert (process.returncode, output) == (0, "")
        until(lambda: gone(process.pid))


RANKS = """
def train(position, batch, passes, iterations):
    ranks = join()
    torch.manual_seed(0)
    model = net = torch.nn.Linear(4, 1, dtype=torch.float64)
    if not ranks.alone:
        net = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    loader = ElasticLoader(Data(), ranks, batch=batch, passes=passes, num_workers=1)
    loader.position = position
    for cell, batch in loader.stream():
        inputs = (batch[:, :1].double() / 50 - 1) ** torch.arange(1, 5)
        if not ranks.alone:
            net.require_backward_grad_sync = cell.last
        (net(inputs).square().mean() * cell.weight).backward()
        if cell.last:
            optimizer.step()
            optimizer.zero_grad()
            loader.advance()
            iterations -= 1
        if not iterations:
            weights = [value for part in model.parameters() for value in part.flatten().tolist()]
            return loader.position == Position(3, 0), weights

torch.optim.SGD([torch.zeros(1)], lr=0.1)  # what this imports is then there before the forks
pids = []
for world, passes in (1, 0), (3, 2):
    for rank in range(world):
        pids.append(os.fork())
        if not pids[-1]:
            os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
            print(repr(train(Position(0, 30), 32, passes, 11)) + "\\n", end="", flush=True)
            sys.exit(0)
assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 4
"""


@pytest.mark.slow
def test_real_ranks_take_the_steps_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    monkeypatch.setenv("MASTER_PORT", str(port))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with script(tmp_path, RANKS) as process:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
    ended, weights = zip(*map(ast.literal_eval, output.splitlines()), strict=True)
    assert ended == (True,) * 4
    np.testing.assert_allclose(weights, [weights[0]] * 4, rtol=1e-12)
    assert len(set(map(tuple, weights))) <= 2  # all three ranks have the very same weights
