"""The parts of a checkpoint that are no tensors: pickles, in files of their own or in memory."""

import io
import os
from collections.abc import Mapping
from pathlib import Path

import torch

SHARED = "shared.pt"


def own_name(rank: int) -> str:
    return f"own-{rank}.pt"


def pickled(value: object) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def put_down(folder: Path, pickles: Mapping[str, bytes]) -> None:
    """On the disk, by the names of their files."""
    for name, content in pickles.items():
        with open(folder / name, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
