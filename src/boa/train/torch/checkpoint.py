"""Checkpoints of a training on several ranks: saved on any number of them, loaded on any other.

A checkpoint is a folder that all ranks write into, on whatever nodes they are, so all nodes must
see the same checkpoint folder. It is published once every rank has written its part: a rank that
fails or is killed before leaves no such checkpoint. What is no tensor is kept as a pickle, and read
without running what it says (`unpickling`).
"""

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from boa.train import checkpoints
from boa.train.checkpoints import Manifest, Progress
from boa.train.torch import storage
from boa.train.torch.circle import Circle, Failed
from boa.train.torch.ranks import Ranks
from boa.train.torch.snapshot import Snapshots
from boa.train.torch.unpickling import check, loaded

Seconds = Mapping[str, float]
_NOTHING: Seconds = MappingProxyType({})


class NotLoaded(RuntimeError):
    """There are checkpoints, and none of them can be read into this model."""

    def __init__(self, home: Path, reason: str) -> None:
        self.home, self.reason = home, reason
        super().__init__(
            f"{home}: no checkpoint there can be loaded ({reason}). If the model has changed on "
            "purpose, remove them or take another folder."
        )


@dataclass(frozen=True, slots=True)
class Loaded:
    path: Path
    progress: Progress
    shared: dict[str, Any]
    """Rank 0's."""
    own: dict[str, Any] | None
    """This rank's; None if another number of ranks saved it."""
    world_size: int
    """Ranks that saved it."""
    parts: Seconds


@dataclass(frozen=True, slots=True)
class _Taken:
    """A rank's part of the state, as it was at the step that is saved."""

    draft: storage.Draft
    values: Callable[[], Mapping[str, Any]]
    """May take a while: for the background."""
    pickles: Mapping[str, bytes]
    """Pickled bytes by the names of their files."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A save that was asked for."""

    take: Callable[[], _Taken]
    manifest: Callable[[], Manifest]
    """The manifest, made on rank 0 when all is written."""

    def taken(self) -> "_Job":
        """With what `take` gives, or raises, at this moment."""
        outcome: Future[_Taken] = Future()
        try:
            outcome.set_result(self.take())
        except Exception as problem:  # not here: the other ranks have to hear of it
            outcome.set_exception(problem)
        return _Job(outcome.result, self.manifest)


class Checkpointer:
    """All ranks make one and call the same methods in the same order."""

    def __init__(self, home: Path | None, ranks: Ranks) -> None:
        """Without a home saves go nowhere, and there is nothing to load."""
        self._home, self._ranks = home, ranks
        self._snapshots = Snapshots(ranks.device)
        self._thread: threading.Thread | None = None
        self._problem: Exception | None = None
        self._checked = False
        """Whether what is saved was found to be readable again."""
        self.stall_s = 0.0
        """How long the last save kept training waiting."""
        if home is not None and ranks.rank == 0:
            _sweep(checkpoints.leftovers(home))

    @cached_property
    def _ahead(self) -> Circle:
        """For who trains."""
        return Circle(self._ranks)

    @cached_property
    def _behind(self) -> Circle:
        """For who writes: training may be talking at the same time."""
        return Circle(self._ranks)

    def save(
        self,
        *,
        tensors: dict[str, Any],
        shared: dict[str, Any],
        own: dict[str, Any],
        progress: Progress,
        parts: Seconds | Callable[[], Seconds] = _NOTHING,
        wait: bool = False,
    ) -> bool:
        """Called by all ranks at the same step; everything may be changed as soon as it returns.

        `tensors` are the same on all ranks, or DTensors; `shared` is rank 0's, `own` each rank's.
        `parts`, asked of rank 0 just before it is published, goes into the manifest. Writing is
        left to the background, where a failure is only told; with `wait` it returns when the
        checkpoint is published, and raises `Failed` if it is not. False: nothing is saved, because
        there is no home or the last save is still being written.
        """
        if self._home is None:
            return False
        began = time.perf_counter()
        if wait:
            self._settle()
        elif self._ahead.agree(self._busy):
            return False
        job = _Job(
            take=lambda: self._take(tensors, shared, own, copied=not wait),
            manifest=lambda: Manifest(
                progress, self._ranks.world_size, parts() if callable(parts) else parts
            ),
        )
        self._behind  # noqa: B018  all ranks make it here, in the same order
        if wait:
            self._write(job)
        else:
            self._begin(job.taken())
        self.stall_s = time.perf_counter() - began
        return True

    def finish(self) -> None:
        """Wait for what is being written; raises what went wrong with it."""
        self._settle()
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def close(self) -> None:
        """Wait for what is being written; nothing can be saved or loaded from then on."""
        self._settle()
        for name in ("_ahead", "_behind"):
            if name in self.__dict__:  # it was needed
                self.__dict__.pop(name).close()

    def exists(self) -> bool:
        """Whether there is anything to load."""
        return bool(self._look())

    def load(self, tensors: dict[str, Any]) -> Loaded | None:
        """The newest that can be read, into the tensors, in place; None if there is none.

        Raises `NotLoaded` if there are some and none can be read: the tensors are then in disorder.
        """
        problem: Failed | None = None
        for path in self._look():
            try:
                return self._ahead.together(partial(self._read, path, tensors))
            except Failed as raised:
                problem = raised
                self._say(f"checkpoint {path.name} cannot be loaded ({raised})")
        if self._home is None or problem is None:
            return None
        raise NotLoaded(self._home, str(problem)) from problem

    def _look(self) -> list[Path]:
        """As rank 0 sees it."""
        home = self._home
        return [] if home is None else self._ahead.first(lambda: checkpoints.newest_first(home))

    def _read(self, path: Path, tensors: dict[str, Any]) -> Loaded:
        manifest = checkpoints.manifest_at(path)
        if manifest is None or manifest.world_size is None:
            raise ValueError("it was saved without boa.train.torch")
        storage.read(path, tensors)
        same = manifest.world_size == self._ranks.world_size
        return Loaded(
            path=path,
            progress=manifest.progress,
            shared=loaded(path / _SHARED),
            own=loaded(path / _own(self._ranks.rank)) if same else None,
            world_size=manifest.world_size,
            parts=manifest.parts,
        )

    def _take(
        self, tensors: dict[str, Any], shared: dict[str, Any], own: dict[str, Any], *, copied: bool
    ) -> _Taken:
        draft = storage.Draft(tensors, self._ranks)
        pickles = {_own(self._ranks.rank): _pickled(own)}
        if self._ranks.rank == 0:
            pickles[_SHARED] = _pickled(shared)
        if not self._checked:  # once: what a script keeps is of the same types each time
            values = (v for v in draft.values.values() if not isinstance(v, torch.Tensor))
            for content in (*pickles.values(), _pickled(list(values))):
                check(content)
            self._checked = True
        snapshot = self._snapshots.take if copied else self._snapshots.hold
        return _Taken(draft, snapshot(draft.values).land, pickles)

    def _begin(self, job: _Job) -> None:
        self._problem = None
        self._thread = threading.Thread(target=self._attempt, args=[job], name="boa-checkpoint")
        self._thread.start()

    def _attempt(self, job: _Job) -> None:
        try:
            self._write(job)
        except Exception as problem:  # whatever it is, training goes on
            self._problem = problem
            self._say(f"no checkpoint was saved ({problem}); training goes on")

    def _write(self, job: _Job) -> None:
        """All ranks together: it ends with a new checkpoint, or raises and leaves nothing."""
        home, circle = self._home, self._behind
        assert home is not None
        folder = circle.first(lambda: checkpoints.begin(home))
        try:
            draft, values = circle.together(lambda: _prepared(folder, job.take()))
            draft.write(folder, values, circle)
            circle.first(lambda: _published(folder, job.manifest()))
        except BaseException:
            if self._ranks.rank == 0:
                checkpoints.abandon(folder)
            raise

    def _busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _settle(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _say(self, text: str) -> None:
        if self._ranks.rank == 0:
            print(f"boa: {text}", file=sys.stderr, flush=True)


def _prepared(folder: Path, taken: _Taken) -> tuple[storage.Draft, Mapping[str, Any]]:
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder.parent}: every node must see the same checkpoint folder")
    for name, content in taken.pickles.items():
        with open(folder / name, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    return taken.draft, taken.values()


def _published(folder: Path, manifest: Manifest) -> Path:
    path = checkpoints.publish(folder, manifest)
    _sweep(checkpoints.retired(path.parent))
    return path


def _sweep(folders: Sequence[Path]) -> None:
    """Remove them while others go on: gigabytes take a while, and nobody needs to wait for it.

    What is left when the process ends goes when the next one begins.
    """

    def remove() -> None:
        for folder in folders:
            checkpoints.abandon(folder)

    if folders:
        threading.Thread(target=remove, name="boa-sweep", daemon=True).start()


_SHARED = "shared.pt"


def _own(rank: int) -> str:
    return f"own-{rank}.pt"


def _pickled(value: object) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()
