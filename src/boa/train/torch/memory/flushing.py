"""Writes to the disk what a run has left in memory: a process that a keeper starts.

`python -m boa.train.torch.memory.flushing HOME KEEPER GENERATION`. Ends with code 0 when there is
nothing left to do: it is on the disk, or a newer checkpoint is.
"""

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, TensorStorageMetadata
from torch.distributed.checkpoint.planner import (
    SavePlan,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

from boa.train import checkpoints
from boa.train.keeper import pointer
from boa.train.keeper.pointer import Pointer
from boa.train.torch import storage
from boa.train.torch.memory.handing import Handing
from boa.train.torch.memory.pieces import PieceReader, chunk_of
from boa.train.torch.pickles import SHARED, own_name, put_down
from boa.train.torch.ranks import Ranks

ALONE = Ranks(0, 1, 0, 1, torch.device("cpu"))


def write_out(home: Path, folder: Path, generation: str) -> Path | None:
    """The checkpoint; None: there is no need of it any more."""
    with closing(Handing(home, ALONE, folder)) as handing:
        return _written(home, handing, generation)


def _written(home: Path, handing: Handing, generation: str) -> Path | None:
    for half in checkpoints.begun(home, generation):  # by one that was killed
        checkpoints.abandon(half)
    found = handing.newest()
    if found is None or found.generation != generation:
        pointer.removed(home, generation)  # it was published by one that was killed then
        return None
    hidden = checkpoints.begin(home, generation)
    try:
        _copy(hidden, handing.reader(found))
        put_down(hidden, _pickles(handing, found))
        path = None
        if pointer.generation_at(home) == generation:  # else another has its number by now
            path = checkpoints.publish(hidden, found.manifest, found.number)
    except FileExistsError:  # training has gone on, and saved
        path = None
    finally:
        handing.loaded()
        checkpoints.abandon(hidden)
    for old in checkpoints.retired(home):
        checkpoints.abandon(old)
    pointer.removed(home, generation)
    handing.release_elsewhere(found)
    return path


def _copy(folder: Path, reader: PieceReader) -> None:
    """Into files of the usual kind."""
    metadata, writer = reader.read_metadata(), storage.into_files(folder)
    writer.set_up_storage_writer(True)
    items = [_item(metadata, index) for index in metadata.storage_data or ()]
    (plan,) = writer.prepare_global_plan([writer.prepare_local_plan(SavePlan(items))])
    written = writer.write_data(plan, _Copying(reader)).wait()
    writer.finish(metadata, [written])


def _item(metadata: Metadata, index: MetadataIndex) -> WriteItem:
    known = metadata.state_dict_metadata[index.fqn]
    if not isinstance(known, TensorStorageMetadata):
        return WriteItem(index=index, type=WriteItemType.BYTE_IO)
    data = TensorWriteData(chunk_of(known, index), known.properties, known.size)
    return WriteItem(index=index, type=WriteItemType.SHARD, tensor_data=data)


class _Copying(DefaultSavePlanner):
    def __init__(self, reader: PieceReader) -> None:
        super().__init__()
        self._reader = reader

    def resolve_data(self, write_item: WriteItem) -> Any:
        if write_item.type == WriteItemType.BYTE_IO:
            return self._reader.content(write_item.index)
        return self._reader.whole(write_item.index)


def _pickles(handing: Handing, found: Pointer) -> dict[str, bytes]:
    own = {own_name(n): handing.pickled(found, n, part.own) for n, part in enumerate(found.parts)}
    return {SHARED: handing.pickled(found, 0, found.shared), **own}


if __name__ == "__main__":
    home, keeper, generation = sys.argv[1:]
    write_out(Path(home), Path(keeper), generation)
