"""What ranks do in the tests of checkpoints."""

import errno
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from boa.train import Progress
from boa.train.checkpoints import newest_first
from boa.train.torch.checkpoint import NotLoaded
from boa.train.torch.circle import Circle, Failed
from boa.train.torch.ranks import Ranks
from checkpoint_ranks import checkpointer, same, trained, whole

KINDS = {"replicated": False, "sharded": True}
LARGE = 1 << 19
"""Elements of a tensor that ranks share out among them (2 MB)."""


def constant(value: float) -> dict[str, Any]:
    """A state that says everywhere which one it is, with a large part for each of four ranks."""
    large = {str(number): torch.full((LARGE,), value) for number in range(4)}
    return {"model": large, "optimizer": {"step": torch.tensor(value), "groups": [{"lr": value}]}}


def is_constant(state: dict[str, Any], value: float) -> bool:
    return same(state, constant(value))


def save_trained(ranks: Ranks, say: object, home: str) -> None:
    for kind, sharded in KINDS.items():
        state = trained(ranks, sharded=sharded, seed=ranks.world_size)
        expected = whole(state)
        saver = checkpointer(f"{home}/{kind}-{ranks.world_size}", ranks)
        own = {"rank": ranks.rank}
        at = Progress(1, 2.5, ranks.world_size)
        saver.save(tensors=state, shared=own, own=own, progress=at, wait=True)
        if ranks.rank == 0:
            torch.save(expected, f"{home}/{kind}-{ranks.world_size}.pt")


def load_trained(ranks: Ranks, say: object, home: str, saved: list[int]) -> list[Any]:
    """For every checkpoint: whether all of it is the same, and what `own` is."""
    found = []
    for kind, sharded in KINDS.items():
        for size in saved:
            state = trained(ranks, sharded=sharded, seed=99)
            loaded = checkpointer(f"{home}/{kind}-{size}", ranks).load(state)
            assert loaded is not None
            assert loaded.progress == Progress(1, 2.5, size)
            assert (loaded.world_size, loaded.shared) == (size, {"rank": 0})
            expected = torch.load(f"{home}/{kind}-{size}.pt")
            found.append((kind, size, same(whole(state), expected), loaded.own))
    return found


def save_and_change(ranks: Ranks, say: object, home: str) -> None:
    """Two saves in the background, each with everything changed right after it."""
    saver = checkpointer(home, ranks)
    state = constant(0.0)
    for value in (1.0, 2.0):
        shared, own = {"values": [value]}, {"values": [value, ranks.rank]}
        _fill(state, value)
        at = Progress(step=int(value))
        assert saver.save(tensors=state, shared=shared, own=own, progress=at)
        _fill(state, -1.0)
        shared["values"].clear()
        own["values"].clear()
        saver.finish()
        loaded = saver.load(state)
        assert loaded is not None
        assert is_constant(state, value)
        assert (loaded.shared, loaded.own) == ({"values": [value]}, {"values": [value, ranks.rank]})


def _fill(state: dict[str, Any], value: float) -> None:
    for tensor in state["model"].values():
        tensor.fill_(value)
    state["optimizer"]["step"].fill_(value)
    state["optimizer"]["groups"][0]["lr"] = value


def save_on_and_on(ranks: Ranks, say: Callable[[Any], None], home: str) -> None:
    """Until killed. Every step is saved, in turns in the background and not."""
    saver = checkpointer(home, ranks)
    state = constant(0.0)
    loaded = saver.load(state) if saver.exists() else None
    step = loaded.progress.step if loaded else 0
    while True:
        step += 1
        _fill(state, float(step))
        text = {"step": step}
        at = Progress(step=step)
        saver.save(tensors=state, shared=text, own=text, progress=at, wait=step % 2 == 0)
        say(step)


def load_constant(ranks: Ranks, say: object, home: str) -> int:
    """The step of the newest checkpoint, all of which must be of that step."""
    state = constant(-1.0)
    loaded = checkpointer(home, ranks).load(state)
    if loaded is None:
        return 0
    assert loaded.path == newest_first(Path(home))[0]
    step = loaded.progress.step
    assert is_constant(state, float(step))
    assert loaded.shared == {"step": step}
    return step


def fail_to_write(ranks: Ranks, say: object, home: str) -> tuple[str, str]:
    """The last rank has no room for large files. What waiting raises, and the background."""
    saver = checkpointer(home, ranks)

    def save(step: int, *, wait: bool) -> None:
        state, nothing = constant(float(step)), {"step": step}
        at = Progress(step=step)
        saver.save(tensors=state, shared=nothing, own=nothing, progress=at, wait=wait)

    save(1, wait=True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if ranks.rank == ranks.world_size - 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    raised = [_raised(lambda: save(2, wait=True))]
    save(3, wait=False)
    raised.append(_raised(saver.finish))
    saver.finish()  # told once
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    if ranks.rank == 0:
        names = sorted(path.name for path in Path(home).iterdir())
        assert names == ["checkpoint-00000001"], names
    save(4, wait=False)
    saver.finish()
    return raised[0], raised[1]


def _raised(work: Callable[[], object]) -> str:
    try:
        work()
    except (Failed, NotLoaded) as problem:
        return str(problem)
    raise AssertionError("nothing was raised")


def talk_while_saving(ranks: Ranks, say: object, home: str) -> None:
    """Sums over all ranks, one always under way, while saves follow each other."""
    saver, state, made, step = checkpointer(home, ranks), constant(1.0), 0, 0
    total = ranks.world_size * (ranks.world_size - 1) / 2
    while step < 300 or made < 2:  # where others have the disk, one save may take all of these
        step += 1
        mine = torch.full((1000,), float(ranks.rank + step))
        under_way = dist.all_reduce(mine, async_op=True)
        at = Progress(step=step)
        made += saver.save(tensors=state, shared={}, own={}, progress=at)
        under_way.wait()
        assert mine.tolist() == [total + step * ranks.world_size] * 1000
    saver.finish()
    assert made < step


def save_while_saving(ranks: Ranks, say: object, home: str) -> list[Any]:
    """Whether saves were made that were asked for while the first one could not be published."""
    saver, allowed = checkpointer(home, ranks), threading.Event()

    def held() -> dict[str, float]:
        assert allowed.wait(300)
        return {"save": 1.5}

    def save(step: int, **more: Any) -> bool:
        state, text = constant(float(step)), {"step": step}
        at = Progress(step=step)
        return saver.save(tensors=state, shared=text, own=text, progress=at, **more)

    made: list[Any] = [save(1, parts=held), save(2)]
    release = threading.Timer(0.3, allowed.set)
    release.start()
    made.append(save(3, wait=True))  # after the first one, however long it takes
    release.join()
    made.append([path.name for path in newest_first(Path(home))])
    for step in (4, 5):
        save(step, parts={"stop": 0.25}, wait=True)
    loaded = saver.load(constant(0.0))
    assert loaded is not None
    return [*made, loaded.parts, [path.name for path in sorted(Path(home).glob("[!.]*"))]]


def load_damaged(ranks: Ranks, say: object, home: str) -> list[Any]:
    """Loads after damage that only the last rank can see, and after damage to all of them."""
    saver = checkpointer(home, ranks)
    for step in (1, 2):
        state, text = constant(float(step)), {"step": step}
        at = Progress(step=step)
        saver.save(tensors=state, shared=text, own=text, progress=at, wait=True)
    circle, newest = Circle(ranks), Path(home, "checkpoint-00000002")
    circle.first((newest / f"own-{ranks.world_size - 1}.pt").unlink)
    loaded = saver.load(state)
    assert loaded is not None
    assert loaded.path is not None
    assert is_constant(state, 1.0)
    for file in Path(home, "checkpoint-00000001").glob("*.distcp"):
        circle.first(lambda file=file: _cut(file))  # type: ignore[misc]
    return [loaded.path.name, _raised(lambda: saver.load(state))]


def _cut(file: Path) -> None:
    with open(file, "r+b") as opened:
        opened.truncate(100)


def agree_and_fail(ranks: Ranks, say: object) -> list[Any]:
    circle = Circle(ranks)
    last = ranks.world_size - 1
    found: list[Any] = [circle.agree(lambda: ranks.rank == last), circle.agree(lambda: False)]
    found.append(circle.first(lambda: f"by {ranks.rank}"))
    found.append(circle.together(lambda: ranks.rank))

    def fail() -> None:
        if ranks.rank == last:
            raise OSError(errno.ENOSPC, "full")

    found.append(_raised(lambda: circle.together(fail)))
    found.append(_raised(lambda: circle.first(lambda: 1 // 0)))
    found.append(circle.together(lambda: "and on"))
    return found
