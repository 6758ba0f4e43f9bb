"""Checkpoints of a training on several ranks: saved on any number of them, loaded on any other.

A checkpoint is a folder that all ranks write into, on whatever nodes they are, so all nodes must
see the same checkpoint folder. It is published once every rank has written its part: a rank that
fails or is killed before leaves no such checkpoint. What is no tensor is kept as a pickle, and read
without running what it says (`unpickling`).
"""

import io
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
from boa.train.keeper import pointer
from boa.train.keeper.pointer import Pointer
from boa.train.torch import storage
from boa.train.torch.circle import Circle, Failed
from boa.train.torch.memory.handing import Handing, Pickles
from boa.train.torch.pickles import SHARED, own_name, pickled, put_down
from boa.train.torch.ranks import Ranks
from boa.train.torch.snapshot import Snapshots, local_of, tensor_bytes
from boa.train.torch.unpickling import check, loaded

Seconds = Mapping[str, float]
_NOTHING: Seconds = MappingProxyType({})
_SWEEPING = "boa-sweep"


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
    path: Path | None
    """The checkpoint's; None: it was in memory."""
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
    safe: Callable[[], None]
    """Called on rank 0 once the checkpoint is complete."""

    def taken(self) -> "_Job":
        """With what `take` gives, or raises, at this moment."""
        outcome: Future[_Taken] = Future()
        try:
            outcome.set_result(self.take())
        except Exception as problem:  # not here: the other ranks have to hear of it
            outcome.set_exception(problem)
        return _Job(outcome.result, self.manifest, self.safe)


class Checkpointer:
    """All ranks make one and call the same methods in the same order."""

    def __init__(self, home: Path | None, ranks: Ranks, keeper: Path | None = None) -> None:
        """Without a home saves go nowhere, and there is nothing to load. `keeper`: the folder of
        the one that holds state in this node's memory, if there is one."""
        self._home, self._ranks = home, ranks
        self._handing = None if home is None else Handing(home, ranks, keeper)
        self._gone = ""
        """The generation that was found to be gone, and told of."""
        self._snapshots = Snapshots(ranks.device)
        self._thread: threading.Thread | None = None
        self._problem: Exception | None = None
        self._checked = False
        """Whether what is saved was found to be readable again."""
        self.stall_s = 0.0
        """How long the last save kept training waiting."""
        if self._handing is not None:
            self._handing.expect()
        if home is not None and ranks.rank == 0:
            _sweep(checkpoints.leftovers(home, spared=pointer.generation_at(home)))

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
        leaving: bool = False,
        safe: Callable[[], None] = lambda: None,
    ) -> bool:
        """Called by all ranks at the same step; everything may be changed as soon as it returns.

        `tensors` are the same on all ranks, or DTensors; `shared` is rank 0's, `own` each rank's.
        `parts`, asked of rank 0 just before it is published, goes into the manifest. Writing is
        left to the background, where a failure is only told; with `wait` it returns when the
        checkpoint is published, and raises `Failed` if it is not. `leaving`: as with `wait`, but in
        memory, if there is some, from where it gets to the disk when this run is over. `safe` is
        called on rank 0 once the checkpoint is complete, by whichever thread wrote it. False:
        nothing is saved, because there is no home or the last save is still being written.
        """
        if self._home is None:
            return False
        began = time.perf_counter()
        if wait or leaving:
            self._settle()
        elif self._ahead.agree(self._busy):
            return False
        job = _Job(
            take=lambda: self._take(tensors, shared, own, copied=not (wait or leaving)),
            manifest=lambda: Manifest(
                progress, self._ranks.world_size, parts() if callable(parts) else parts
            ),
            safe=safe,
        )
        self._behind  # noqa: B018  all ranks make it here, in the same order
        if leaving and self._left_in_memory(job):
            pass
        elif wait or leaving:
            self._write(job)
        else:
            self._begin(job.taken())
        self.stall_s = time.perf_counter() - began
        return True

    def reserve(
        self, tensors: Callable[[], dict[str, Any]], shared: Callable[[], Any] = dict
    ) -> None:
        """Have memory ready for a state like this one, in which to leave it. Without a keeper
        nobody asks for the state."""
        if self._handing is not None and self._handing.reserves:
            values = storage.Draft(tensors(), self._ranks).values.values()
            size = sum(local_of(v).nbytes for v in values if isinstance(v, torch.Tensor))
            beside = tensor_bytes(shared())
            self._handing.reserve(size + beside * (self._ranks.rank == 0))

    @property
    def has_memory(self) -> bool:
        return self._handing is not None and self._handing.ready

    def finish(self) -> None:
        """Wait for what is being written; raises what went wrong with it."""
        self._settle()
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def close(self) -> None:
        """Wait for what is being written; nothing can be saved or loaded from then on."""
        self._settle()
        if self._handing is not None:
            self._handing.close()
        for name in ("_ahead", "_behind"):
            if name in self.__dict__:  # it was needed
                self.__dict__.pop(name).close()

    def exists(self) -> bool:
        """Whether there is anything to load."""
        return bool(self._look())

    def _left_in_memory(self, job: _Job) -> bool:
        """Whether the state is in memory for the next run; if not, it is to go to the disk."""
        handing, circle = self._handing, self._behind
        if handing is None or circle.agree(lambda: not handing.ready):
            return False
        try:
            taken = circle.together(job.take)
            pickles = Pickles(
                taken.pickles[own_name(self._ranks.rank)], taken.pickles.get(SHARED, b"")
            )
            values = {name: local_of(value) for name, value in taken.draft.values.items()}
            manifest = job.manifest()
            handing.save(taken.draft, values, pickles, manifest, circle)
        except Failed as problem:
            self._say(f"the state was not left in memory ({problem}); it goes to the disk")
            return False
        if self._ranks.rank == 0:
            job.safe()
        step = manifest.progress.step
        self._say(f"step {step} is in memory for the next run, and goes to the disk from there")
        return True

    def load(self, tensors: dict[str, Any]) -> Loaded | None:
        """The newest that can be read, into the tensors, in place; None if there is none.

        Raises `NotLoaded` if there are some and none can be read: the tensors are then in disorder.
        """
        problem: Failed | None = None
        for source in self._look():
            name = source.name if isinstance(source, Path) else "in memory"
            try:
                return self._ahead.together(partial(self._read, source, tensors))
            except Failed as raised:
                problem = raised
                self._say(f"checkpoint {name} cannot be loaded ({raised})")
        if self._home is None or problem is None:
            return None
        raise NotLoaded(self._home, str(problem)) from problem

    def _look(self) -> list[Path | Pointer]:
        """As rank 0 sees it, the newest first."""
        home, handing = self._home, self._handing
        if home is None:
            return []

        def found() -> list[Path | Pointer]:
            left = None if handing is None else handing.newest()
            if left is not None and handing is not None and (why := handing.missing(left)):
                self._say_gone(left, why)
                left = None
            return [*([] if left is None else [left]), *checkpoints.newest_first(home)]

        return self._ahead.first(found)

    def _say_gone(self, left: Pointer, why: str) -> None:
        if self._gone != left.generation:
            self._gone = left.generation
            at = left.manifest.progress.step
            self._say(f"the state of step {at} was in memory, and is not any more ({why})")

    def _read(self, source: Path | Pointer, tensors: dict[str, Any]) -> Loaded:
        if isinstance(source, Pointer):
            return self._read_memory(source, tensors)
        manifest = checkpoints.manifest_at(source)
        if manifest is None or manifest.world_size is None:
            raise ValueError("it was saved without boa.train.torch")
        storage.read(storage.from_files(source), tensors)
        same = manifest.world_size == self._ranks.world_size
        own = loaded(source / own_name(self._ranks.rank)) if same else None
        return _as_loaded(source, manifest, loaded(source / SHARED), own)

    def _read_memory(self, source: Pointer, tensors: dict[str, Any]) -> Loaded:
        handing, rank = self._handing, self._ranks.rank
        assert handing is not None
        try:
            storage.read(handing.reader(source), tensors)
            shared = loaded(io.BytesIO(handing.pickled(source, 0, source.shared)))
            own = None
            if len(source.parts) == self._ranks.world_size:
                own = loaded(io.BytesIO(handing.pickled(source, rank, source.parts[rank].own)))
        finally:
            handing.loaded()
        return _as_loaded(None, source.manifest, shared, own)

    def _take(
        self, tensors: dict[str, Any], shared: dict[str, Any], own: dict[str, Any], *, copied: bool
    ) -> _Taken:
        draft = storage.Draft(tensors, self._ranks)
        pickles = {own_name(self._ranks.rank): pickled(own)}
        if self._ranks.rank == 0:
            pickles[SHARED] = pickled(shared)
        if not self._checked:  # once: what a script keeps is of the same types each time
            values = (v for v in draft.values.values() if not isinstance(v, torch.Tensor))
            for content in (*pickles.values(), pickled(list(values))):
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
            draft.write(storage.into_files(folder), values, circle)
            circle.first(lambda: _published(folder, job.manifest()))
        except BaseException:
            if self._ranks.rank == 0:
                checkpoints.abandon(folder)
            raise
        if self._ranks.rank == 0:
            job.safe()

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
    put_down(folder, taken.pickles)
    return taken.draft, taken.values()


def _published(folder: Path, manifest: Manifest) -> Path:
    path = checkpoints.publish(folder, manifest)
    _sweep(checkpoints.retired(path.parent))
    return path


def _sweep(folders: Sequence[Path]) -> None:
    """Remove them while others go on: gigabytes take a while, and nobody needs to wait for it.

    What is left when the process ends goes when the next one begins; the last waits (`swept`).
    """

    def remove() -> None:
        for folder in folders:
            checkpoints.abandon(folder)

    if folders:
        threading.Thread(target=remove, name=_SWEEPING, daemon=True).start()


def swept() -> None:
    """Wait until what was to be removed is gone."""
    for thread in threading.enumerate():
        if thread.name == _SWEEPING:
            thread.join()


def _as_loaded(
    path: Path | None, manifest: Manifest, shared: dict[str, Any], own: dict[str, Any] | None
) -> Loaded:
    assert manifest.world_size is not None
    return Loaded(path, manifest.progress, shared, own, manifest.world_size, manifest.parts)
