"""Reading and writing with several threads, in the format of torch.distributed.checkpoint.

What is written is an ordinary checkpoint of that library, and whatever reads those reads this. Its
own writer has threads, too, but a thread that fails (a full disk) fails unheard there, and the
checkpoint lacks what it had to write.
"""

import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.distributed.checkpoint._nested_dict import set_element
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from torch.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.distributed.tensor import DTensor
from torch.futures import Future

from boa.train.torch.circle import Circle
from boa.train.torch.ranks import Ranks
from boa.train.torch.unpickling import IndexUnpickler, harmless

THREADS = min(8, os.cpu_count() or 1)
SPREAD_BYTES = 1 << 20
"""Tensors from this size on are written by one rank each; smaller ones by rank 0."""

_T = TypeVar("_T")


class Draft:
    """This rank's part of a state that all ranks have, to be written, and the plan of it.

    A DTensor's shards are written where they are. Of other tensors every rank is taken to have the
    same; where a small one differs after all (batch norm's running statistics), rank 0's counts, as
    it does in DDP.
    """

    def __init__(self, tensors: dict[str, Any], ranks: Ranks) -> None:
        self.planner = _Planner(flatten_sharded_tensors=False)
        self.planner.set_up_planner(tensors, None, ranks.rank == 0)
        self.planner.state_dict = self.values = _mine(self.planner.state_dict, ranks)

    def write(self, writer: StorageWriter, values: Mapping[str, Any], circle: Circle) -> None:
        """All ranks together. `values` are those of `self.values`, on the host or not."""
        self.planner.frozen = values
        metadata: Metadata | None = None

        def merge(plans: Sequence[SavePlan]) -> list[SavePlan]:
            nonlocal metadata
            merged, metadata = self.planner.create_global_plan(list(plans))
            return writer.prepare_global_plan(merged)

        def finish(results: Sequence[list[WriteResult]]) -> list[None]:
            assert metadata is not None
            writer.finish(metadata, list(results))
            return [None] * len(results)

        plan = circle.exchange(lambda: self._local_plan(writer), merge)
        circle.exchange(lambda: self._written(writer, plan), finish)

    def _local_plan(self, writer: StorageWriter) -> SavePlan:
        writer.set_up_storage_writer(self.planner.is_coordinator)
        return writer.prepare_local_plan(self.planner.create_local_plan())

    def _written(self, writer: StorageWriter, plan: SavePlan) -> list[WriteResult]:
        return writer.write_data(self.planner.finish_plan(plan), self.planner).wait()


def into_files(folder: Path) -> StorageWriter:
    return _Writer(folder, sync_files=True, per_thread_copy_ahead=0)


def from_files(folder: Path) -> StorageReader:
    return _Reader(folder)


def read(reader: StorageReader, tensors: dict[str, Any]) -> None:
    """Into the tensors, in place; what is no tensor is put into the dictionary.

    Each rank reads for itself, whatever number of ranks wrote it.
    """
    # looking for FSDP1's tensors, which nobody has here, makes None of empty dictionaries
    planner = _LoadPlanner(flatten_sharded_tensors=False)
    metadata = reader.read_metadata()
    _forget_unknown(tensors, metadata)
    planner.set_up_planner(tensors, metadata, False)
    reader.set_up_storage_reader(metadata, False)
    plan = planner.finish_plan(reader.prepare_local_plan(planner.create_local_plan()))
    with harmless():  # around all threads: what torch takes to be safe is the process's
        reader.read_data(plan, planner).wait()


def _forget_unknown(tensors: dict[str, Any], metadata: Metadata) -> None:
    """State of the optimiser for parameters that had none when it was saved.

    They had had no gradient yet. A state that is asked for has an entry for every parameter.
    """
    for kind in (name for name in tensors if name.startswith("optimizer")):
        states: dict[str, dict[str, Any]] = tensors[kind].get("state", {})
        for parameter, state in list(states.items()):
            names = (f"{kind}.state.{parameter}.{name}" for name in state)
            if state and not any(name in metadata.state_dict_metadata for name in names):
                del states[parameter]


class _Planner(DefaultSavePlanner):
    """Plans by the live tensors, and writes the copies that were taken of them."""

    frozen: Mapping[str, Any]

    def lookup_object(self, index: MetadataIndex) -> Any:
        return self.frozen[index.fqn]


class _Writer(FileSystemWriter):
    """One file per thread."""

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        prefix = plan.storage_data.prefix
        parts = [
            replace(
                plan, items=items, storage_data=replace(plan.storage_data, prefix=f"{prefix}{n}_")
            )
            for n, items in enumerate(_balanced(plan.items, _size, THREADS))
            if items
        ]
        write = super().write_data
        results = _together(lambda part: write(part, planner).wait(), parts)
        return _done([result for found in results for result in found])


class _LoadPlanner(DefaultLoadPlanner):
    """Runs nothing that a file says; torch's own would."""

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        path = self.mappings[read_item.dest_index.fqn]
        set_element(self.original_state_dict, path, torch.load(value, weights_only=True))


class _Reader(FileSystemReader):
    """One thread per file."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with self.fs.create_stream(self._get_metadata_path(kwargs.get("rank")), "rb") as file:
            metadata: Metadata = IndexUnpickler(file).load()
        metadata.storage_meta = metadata.storage_meta or StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        by_file: dict[str, list[Any]] = {}
        for item in plan.items:
            file = self.storage_data[item.storage_index].relative_path
            by_file.setdefault(file, []).append(item)
        read = super().read_data
        parts = [replace(plan, items=items) for items in by_file.values()]
        _together(lambda part: read(part, planner).wait(), parts)
        return _done(None)


def _mine(flat: Mapping[str, Any], ranks: Ranks) -> dict[str, Any]:
    sizes = {
        name: value.nbytes
        for name, value in sorted(flat.items())
        if isinstance(value, torch.Tensor) and not isinstance(value, DTensor)
    }
    large = [name for name, size in sizes.items() if size >= SPREAD_BYTES]
    shares = _balanced(large, sizes.__getitem__, ranks.world_size)
    writer = {name: rank for rank, share in enumerate(shares) for name in share}
    return {
        name: value
        for name, value in flat.items()
        if isinstance(value, DTensor) or writer.get(name, 0) == ranks.rank
    }


def _balanced(items: Iterable[_T], size: Callable[[_T], int], shares: int) -> list[list[_T]]:
    """Shares of about the same size; the same ones for the same items in the same order."""
    filled: list[list[_T]] = [[] for _ in range(shares)]
    sums = [0] * shares
    for item in sorted(items, key=lambda item: -size(item)):
        least = sums.index(min(sums))
        filled[least].append(item)
        sums[least] += size(item) + 1  # so that empty ones are spread, too
    return filled


def _size(item: WriteItem) -> int:
    return item.tensor_storage_size() or 0


def _together(work: Callable[[Any], _T], parts: Sequence[Any]) -> list[_T]:
    """Raises what any of them raised, once all are done."""
    if len(parts) < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(min(THREADS, len(parts)), "boa-checkpoint") as pool:
        return list(pool.map(work, parts))


def _done(value: _T) -> Future[_T]:
    future: Future[_T] = Future()
    future.set_result(value)
    return future
