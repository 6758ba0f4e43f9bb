"""Checkpoints of torch.distributed.checkpoint whose storage is memory: pieces in segments.

Who has which piece is in the index, as it is for files: `relative_path` is the number of the rank
that left it. So whatever saves to files or reads from them at another width does it here, too.
"""

import io
import math
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
)
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from boa.train.keeper.stripes import Stripes
from boa.train.torch.memory.ring import Move, Ring, as_bytes, view_of
from boa.train.torch.unpickling import IndexUnpickler

ALIGNED = 512
FETCHING = 8
"""Pieces that come from other nodes at a time."""


class Full(OSError):
    """There is less room in memory than the state takes."""


class Piece(Protocol):
    """One rank's part of the state."""

    @property
    def near(self) -> Stripes | None:
        """Memory of this node, if it is there."""
        ...

    def bytes(self, first: int, count: int) -> torch.Tensor: ...


class PieceWriter(StorageWriter):
    """This rank's part, into memory from its beginning on."""

    def __init__(self, memory: Stripes, rank: int, ring: Ring) -> None:
        self._memory, self._rank, self._ring = memory, rank, ring
        self.used = 0
        self.index = b""
        """On rank 0, at the end."""

    def reset(self, checkpoint_id: Any = None) -> None:
        self.used = 0

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        results, moves = [], []
        for item in plan.items:
            data = planner.resolve_data(item)
            if isinstance(data, torch.Tensor):
                source = as_bytes(data)
                at = self.room_for(source.numel())
                moves.append(Move(source, self._memory, at))
                size = source.numel()
            else:
                at, size = self.put(data.getvalue())
            info = _StorageInfo(str(self._rank), at, size)
            results.append(WriteResult(index=item.index, size_in_bytes=size, storage_data=info))
        self._ring.out(moves)
        done: Future[list[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        metadata.storage_data = {r.index: r.storage_data for found in results for r in found}
        metadata.storage_meta = StorageMeta()
        self.index = pickle.dumps(metadata)

    def put(self, content: bytes) -> tuple[int, int]:
        """Where it is, and how much."""
        at = self.room_for(len(content))
        self._memory.write(at, content)
        return at, len(content)

    def room_for(self, size: int) -> int:
        at = self.used
        if at + size > self._memory.size:
            raise Full(f"{at + size} bytes do not go into {self._memory.size} of memory")
        self.used = -(-(at + size) // ALIGNED) * ALIGNED
        return at

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return True


class PieceReader(StorageReader):
    """Whatever part of it a rank needs. `pieces`: by rank."""

    def __init__(self, index: bytes, pieces: Callable[[int], Piece], ring: Ring) -> None:
        self._index, self._pieces, self._ring = index, pieces, ring
        self.metadata: Metadata

    def reset(self, checkpoint_id: Any = None) -> None:
        pass

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        self.metadata = IndexUnpickler(io.BytesIO(self._index)).load()
        return self.metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self.metadata = metadata

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        near: list[ReadItem] = []
        far: list[ReadItem] = []
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, self.content(item.storage_index))
            else:
                (near if self._piece(item.storage_index).near else far).append(item)
        with ThreadPoolExecutor(FETCHING, "boa-fetch") as pool:  # these while those are copied
            coming = [pool.submit(self._straight, item, planner) for item in far]
            self._through_ring(near, planner)
            for fetched in coming:
                fetched.result()
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def content(self, index: MetadataIndex) -> io.BytesIO:
        """Something that is no tensor, as it was pickled."""
        info = self._info(index)
        return io.BytesIO(self._piece(index).bytes(info.offset, info.length).numpy().tobytes())

    def whole(self, index: MetadataIndex) -> torch.Tensor:
        """A piece as it was left."""
        kind, sizes = self._kind(index)
        info = self._info(index)
        return _shaped(self._piece(index).bytes(info.offset, info.length), kind, sizes)

    def _through_ring(self, items: Sequence[ReadItem], planner: LoadPlanner) -> None:
        moves: list[Move] = []
        for item in items:
            target = planner.resolve_tensor(item).detach()
            kind, sizes = self._kind(item.storage_index)
            if target.dtype == kind and target.is_contiguous() and item.lengths[1:] == sizes[1:]:
                moves.append(self._move(item, as_bytes(target)))
            else:
                target.copy_(self._rows(item))
            planner.commit_tensor(item, target)
        self._ring.into(moves)

    def _move(self, item: ReadItem, target: torch.Tensor) -> Move:
        memory = self._piece(item.storage_index).near
        assert memory is not None
        first, _ = self._span(item)
        return Move(target, memory, first)

    def _straight(self, item: ReadItem, planner: LoadPlanner) -> None:
        target = planner.resolve_tensor(item).detach()
        with torch.no_grad():
            target.copy_(self._rows(item))
        planner.commit_tensor(item, target)

    def _rows(self, item: ReadItem) -> torch.Tensor:
        """The rows that are asked for; from another node only those are fetched."""
        kind, sizes = self._kind(item.storage_index)
        found = self._piece(item.storage_index).bytes(*self._span(item))
        if not sizes:
            return _shaped(found, kind, sizes)
        rows = _shaped(found, kind, torch.Size([item.lengths[0], *sizes[1:]]))
        for dimension in range(1, len(sizes)):
            at, length = item.storage_offsets[dimension], item.lengths[dimension]
            rows = rows.narrow(dimension, at, length)
        return rows

    def _span(self, item: ReadItem) -> tuple[int, int]:
        """First byte and number of bytes of the rows that are asked for."""
        _, sizes = self._kind(item.storage_index)
        info = self._info(item.storage_index)
        if not sizes or not sizes[0]:
            return info.offset, info.length
        row = info.length // sizes[0]
        return info.offset + item.storage_offsets[0] * row, item.lengths[0] * row

    def _piece(self, index: MetadataIndex) -> Piece:
        return self._pieces(int(self._info(index).relative_path))

    def _info(self, index: MetadataIndex) -> _StorageInfo:
        assert self.metadata.storage_data is not None
        info: _StorageInfo = self.metadata.storage_data[index]
        return info

    def _kind(self, index: MetadataIndex) -> tuple[torch.dtype, torch.Size]:
        known = self.metadata.state_dict_metadata[index.fqn]
        assert isinstance(known, TensorStorageMetadata)
        return known.properties.dtype, chunk_of(known, index).sizes

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return True


def chunk_of(known: TensorStorageMetadata, index: MetadataIndex) -> ChunkStorageMetadata:
    if index.offset is None:
        return known.chunks[0]
    return next(chunk for chunk in known.chunks if chunk.offsets == index.offset)


def _shaped(content: torch.Tensor, kind: torch.dtype, sizes: torch.Size) -> torch.Tensor:
    assert content.numel() == math.prod(sizes) * kind.itemsize
    return content.view(kind).view(sizes) if content.numel() else torch.empty(sizes, dtype=kind)


@dataclass(frozen=True, slots=True)
class Near:
    """In this node's memory."""

    near: Stripes

    def bytes(self, first: int, count: int) -> torch.Tensor:
        content = torch.empty(count, dtype=torch.uint8)
        self.near.read_into(first, view_of(content))
        return content
