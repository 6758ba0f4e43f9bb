"""Handing the training state to the next run through memory: a rank's side of it."""

import contextlib
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from boa.train import checkpoints
from boa.train.checkpoints import Manifest
from boa.train.keeper import far, pointer
from boa.train.keeper.client import KeeperClient, Later, Memory, NoKeeper, begun
from boa.train.keeper.pointer import Part, Pointer
from boa.train.torch import storage
from boa.train.torch.circle import Circle
from boa.train.torch.memory.pieces import Near, Piece, PieceReader, PieceWriter
from boa.train.torch.memory.ring import Ring, view_of
from boa.train.torch.ranks import Ranks

LEAST_BYTES = 32 << 20
"""A smaller state is on the disk as soon."""
SPARE_BYTES = 8 << 20
"""Beside the tensors, for all that is no tensor."""
SPARE_SHARE = 1.02
AGAIN_S = 2.0
"""Memory that is not there yet is asked for again."""
WRITER = "boa.train.torch.memory.flushing"


@dataclass(frozen=True, slots=True)
class Pickles:
    own: bytes
    shared: bytes
    """Rank 0's; others have none."""


@dataclass(frozen=True, slots=True)
class Far:
    """On another node."""

    address: far.Address
    generation: str
    segment: int
    near = None

    def bytes(self, first: int, count: int) -> torch.Tensor:
        content = torch.empty(count, dtype=torch.uint8)
        into = view_of(content)
        far.fetch(self.address, self.generation, self.segment, first, into)
        return content


class Handing:
    """All ranks make one and call the same methods in the same order."""

    def __init__(self, home: Path, ranks: Ranks, folder: Path | None) -> None:
        """`home`: of the checkpoints; `folder`: the keeper's on this node. None: nothing is left
        there, but what was before is found."""
        self._home, self._ranks, self._folder = home, ranks, folder
        self._ring = Ring(ranks.device, ranks.local_world)
        self._client: KeeperClient | None = None
        self._others: dict[str, KeeperClient] = {}
        """Keepers of other jobs on this node, by folder."""
        self._memory: Memory | None = None
        self._pieces: dict[tuple[str, int], Piece] = {}
        self._finding = threading.Lock()
        self._reserving: threading.Thread | None = None
        self._over = threading.Event()

    def reserve(self, count: int) -> None:
        """Have memory for a state of so many bytes on this rank, in the background."""
        if self._folder is not None and self._reserving is None and count >= LEAST_BYTES:
            size = int(count * SPARE_SHARE) + SPARE_BYTES
            self._reserving = threading.Thread(
                target=self._reserve, args=[size], name="boa-reserve", daemon=True
            )
            self._reserving.start()

    @property
    def reserves(self) -> bool:
        """Whether it may leave state in memory at all."""
        return self._folder is not None

    @property
    def ready(self) -> bool:
        """Whether there is memory to leave state in."""
        return self._memory is not None

    def save(
        self,
        draft: storage.Draft,
        values: Mapping[str, Any],
        pickles: Pickles,
        manifest: Manifest,
        circle: Circle,
    ) -> None:
        """All ranks together: raises, and leaves nothing, or the next run finds all of it."""
        generation = circle.first(lambda: f"{time.time_ns():x}")
        memory = self._memory
        assert memory is not None
        writer = PieceWriter(memory.content, self._ranks.rank, self._ring)
        draft.write(writer, values, circle)
        spans: dict[str, tuple[int, int]] = {}

        def leave() -> Part:
            own = writer.put(pickles.own)
            if self._ranks.rank == 0:
                spans.update(shared=writer.put(pickles.shared), index=writer.put(writer.index))
            client = self._connected()
            # all ranks may die from here on, before it is published or after
            command = self._command(generation) if self._ranks.rank == 0 else ()
            beside = self._home / pointer.NAME
            client.keep(memory.number, generation, command, _environment(), beside)
            here = client.where()
            folder = "" if here.address else str(self._folder)
            return Part(memory.number, here.key, here.address, own, here.node, folder)

        def publish(parts: Any) -> list[None]:
            found = Pointer(
                generation=generation,
                number=checkpoints.newest_number(self._home) + 1,
                manifest=manifest,
                parts=tuple(parts),
                **spans,
            )
            pointer.written(self._home, found)
            try:
                self._connected().where()
            except NoKeeper:  # it has died meanwhile, and we are here still: to the disk
                pointer.removed(self._home, generation)
                raise
            return [None] * len(parts)

        self._memory = None
        try:
            circle.exchange(leave, publish)
        except BaseException:
            # rank 0 may have published it, and died before it could say so
            if pointer.generation_at(self._home) != generation:
                with contextlib.suppress(NoKeeper):
                    self._connected().release(generation)
            raise

    def newest(self) -> Pointer | None:
        return pointer.newest(self._home)

    def missing(self, found: Pointer) -> str:
        """Why it cannot be had, before anything of it is read; empty: it can."""
        try:
            for rank in range(len(found.parts)):
                self._piece(found, rank).bytes(0, 1)
        except OSError as problem:
            return str(problem)
        return ""

    def reader(self, found: Pointer) -> PieceReader:
        """OSError: what it needs is not there any more."""
        index = self.pickled(found, 0, found.index)
        return PieceReader(index, lambda rank: self._piece(found, rank), self._ring)

    def pickled(self, found: Pointer, rank: int, span: tuple[int, int]) -> bytes:
        content: bytes = self._piece(found, rank).bytes(*span).numpy().tobytes()
        return content

    def _piece(self, found: Pointer, rank: int) -> Piece:
        key = found.generation, rank
        with self._finding:  # several threads write what they read
            if key not in self._pieces:
                self._pieces[key] = self._found(found, rank)
            return self._pieces[key]

    def _found(self, found: Pointer, rank: int) -> Piece:
        part, client = found.parts[rank], self._here()
        if client is None or part.keeper != client.where().key:
            client = self._other(part)
        if client is not None:
            return Near(client.open(part.segment, found.generation).content)
        if part.address is None:
            raise NoKeeper("the process that held it is gone, or on another machine")
        return Far(part.address, found.generation, part.segment)

    def _other(self, part: Part) -> KeeperClient | None:
        """The keeper of another job, or of this one when it had one, if it is on this node."""
        try:
            if part.folder and part.folder not in self._others:
                self._others[part.folder] = KeeperClient(Path(part.folder))
            client = self._others.get(part.folder)
            return client if client is not None and client.where().key == part.keeper else None
        except NoKeeper:
            return None

    def loaded(self) -> None:
        """This rank needs no more of it."""
        for piece in self._pieces.values():
            if piece.near is not None:
                piece.near.close()
        self._pieces.clear()
        for client in self._others.values():
            client.close()
        self._others.clear()

    def expect(self) -> None:
        """There may be state to load soon: what takes time begins, in the background."""
        if self.newest() is not None:
            threading.Thread(target=self._ring.prepare, name="boa-ring", daemon=True).start()

    def release_elsewhere(self, found: Pointer) -> None:
        """Tell the keepers of other nodes that it is on the disk; this one's knows."""
        here = self._connected().where().key
        for address in {p.address for p in found.parts if p.keeper != here and p.address}:
            with contextlib.suppress(OSError):
                far.release(address, found.generation)

    def close(self) -> None:
        self._over.set()
        self.loaded()
        if self._reserving is not None:
            self._reserving.join()
        if self._client is not None:
            self._client.close()

    def _here(self) -> KeeperClient | None:
        """None: this node has no keeper yet, as one that is new to the job."""
        try:
            return self._connected()
        except NoKeeper:
            return None

    def _connected(self) -> KeeperClient:
        if self._folder is None:
            raise NoKeeper("there is none for this run")
        if self._client is None:
            self._client = KeeperClient(self._folder)
        return self._client

    def _reserve(self, size: int) -> None:
        assert self._folder is not None
        try:
            client = self._client = self._client or begun(self._folder, self._over)
            while not self._over.is_set():
                try:
                    memory = client.reserve(size)
                except Later:
                    self._over.wait(AGAIN_S)
                    continue
                self._ring.prepare()
                self._memory = memory
                return
        except NoKeeper as problem:
            if self._ranks.rank == 0 and not self._over.is_set():
                print(
                    f"boa: stops save to the disk, not to memory ({problem})",
                    file=sys.stderr,
                    flush=True,
                )

    def _command(self, generation: str) -> list[str]:
        return [sys.executable, "-m", WRITER, str(self._home), str(self._folder), generation]


def _environment() -> dict[str, str]:
    """Variables for the writer beside the keeper's own: the same modules, and no GPU."""
    paths = [path for path in sys.path if path]
    return {"PYTHONPATH": ":".join(paths), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
