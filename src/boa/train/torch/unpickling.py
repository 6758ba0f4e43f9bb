"""Reading what was pickled into a checkpoint without running what it says.

torch's weights-only unpickler knows tensors and plain containers; NumPy's arrays, which generators
are made of, are added. Whatever else a script keeps has to be named by it:
torch.serialization.add_safe_globals.
"""

import collections
import dataclasses
import enum
import io
import pathlib
import pickle
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

ADVICE = "torch.serialization.add_safe_globals([…]) names types that may be read"
_INDEX = (
    torch.Size,
    torch.serialization._get_layout,
    collections.OrderedDict,
    pathlib.PosixPath,
    pathlib.PurePosixPath,
)


def harmless() -> AbstractContextManager[Any]:
    """While it lasts, torch reads what checkpoints are made of. For one thread at a time."""
    found: list[Any] = [io.BytesIO]
    if (numpy := sys.modules.get("numpy")) is not None:
        arrays = numpy._core.multiarray
        kinds = {type(numpy.dtype(code)) for code in "?bBhHiIlLqQefdgFDGUS"}
        found += [arrays._reconstruct, arrays.scalar, numpy.ndarray, numpy.dtype, *kinds]
    return torch.serialization.safe_globals(found)


def loaded(file: Path | io.BytesIO) -> Any:
    """The value that `torch.save` has written; a type that is not known to be harmless raises."""
    with harmless():
        return torch.load(file, map_location="cpu", weights_only=True)


def check(pickled: bytes) -> None:
    """Raise now what reading it would."""
    try:
        loaded(io.BytesIO(pickled))
    except pickle.UnpicklingError as problem:
        said = str(problem).partition("WeightsUnpickler error: ")[2] or str(problem)
        cause = said.strip().partition("\n")[0].partition(" was not an allowed")[0][:200]
        raise TypeError(f"its pickle could not be read again ({cause}): {ADVICE}") from None


class IndexUnpickler(pickle.Unpickler):
    """For the index of a checkpoint, a pickle of torch's own: makes only what torch puts there."""

    def find_class(self, module: str, name: str) -> Any:
        known = module.partition(".")[0] in ("torch", "collections", "pathlib")
        if known and "." not in name:
            found = super().find_class(module, name)
            if _is_of_index(found):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is nothing that an index is made of")


def _is_of_index(found: Any) -> bool:
    if any(found is known for known in _INDEX):
        return True
    if not isinstance(found, type):
        return isinstance(found, torch.dtype | torch.layout | torch.memory_format)
    plain = dataclasses.is_dataclass(found) or issubclass(found, enum.Enum)
    return plain and found.__module__.startswith("torch.distributed.checkpoint.")
