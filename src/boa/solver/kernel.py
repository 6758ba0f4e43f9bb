"""The compiled shortest paths, if this installation has them: `_paths.c`, through ctypes."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boa import compiled
from boa.model.speedup import Floats
from boa.solver.tables import Block, Ints


class _Block(ctypes.Structure):
    _fields_ = (
        ("epochs", ctypes.c_int64),
        ("states", ctypes.c_int64),
        ("durations", ctypes.c_void_p),
        ("cost_rates", ctypes.c_void_p),
        ("rescale_s", ctypes.c_void_p),
        ("lengths", ctypes.c_void_p),
    )


_library = compiled.load(__file__, "_paths")
COMPILED = _library is not None


def compiled_paths(
    block: Block, at: Ints, time_weights: Floats, money_weights: Floats
) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """Times, costs and states of the optimal sequences; as `path._solve_part`."""
    assert _library is not None
    _, epochs, states = block.durations.shape
    n = len(at)
    lengths = np.ascontiguousarray(block.epochs, dtype=np.int64)
    asked = np.ascontiguousarray(at, dtype=np.int64)
    weights = [np.ascontiguousarray(w, dtype=float) for w in (time_weights, money_weights)]
    times, costs = np.empty(n), np.empty(n)
    found = np.zeros((n, epochs), dtype=np.int32)
    floats = (block.durations, block.cost_rates, block.rescale_s)
    arrays = (*(np.ascontiguousarray(a, dtype=float) for a in floats), lengths)
    described = _Block(epochs, states, *(_address(a) for a in arrays))
    failed = _library.boa_shortest_paths(
        ctypes.byref(described),
        ctypes.c_int64(n),
        *(ctypes.c_void_p(_address(a)) for a in (asked, *weights, times, costs, found)),
    )
    if failed:
        raise MemoryError("no memory for the solver's working arrays")
    return times, costs, found


def _address(array: NDArray[Any]) -> int:
    return array.ctypes.data
