"""The market: GPUs that are there go to whoever gains most by them.

A price per GPU of every type, raised until all that jobs would take at it fits; what is left over
then goes, each time, to whoever gains most by a GPU. `_clearing.c` does the same, quicker.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boa import compiled
from boa.model.speedup import Floats
from boa.policy.market.prospects import Ints, Prospects

HALVINGS = 30
ROUNDS = 6
"""Sweeps over the GPU types in which their prices settle."""
NOTHING = 1e-12
"""Gains that are no more than rounding, when a price is looked for …"""
LEAST = 1e-9
"""… and when what is left over is given out."""
LIGHT = 0.25
"""GPUs that a change counts as which needs fewer or none."""


@dataclass(frozen=True, slots=True, eq=False)
class Cleared:
    """What every job gets: a column of its states, -1 for waiting."""

    chosen: Ints
    gain: float
    """Seconds gained per second, by all jobs together."""
    prices: Floats
    """Of a GPU of every type: seconds per second."""


class _Market(ctypes.Structure):
    _fields_ = (
        ("jobs", ctypes.c_int64),
        ("states", ctypes.c_int64),
        ("kinds", ctypes.c_int64),
        ("gains", ctypes.c_void_p),
        ("gpus", ctypes.c_void_p),
        ("kind", ctypes.c_void_p),
        ("room", ctypes.c_void_p),
    )


_library = compiled.load(__file__, "_clearing")
COMPILED = _library is not None
if _library is not None:
    _library.boa_clear.restype = ctypes.c_double


def cleared(found: Prospects, room: Floats) -> Cleared:
    """`room`: GPUs of every type."""
    if not found.jobs:
        return Cleared(np.zeros(0, dtype=np.int64), 0.0, np.zeros(len(room)))
    return cleared_in_python(found, room) if _library is None else _compiled(found, room)


def _compiled(found: Prospects, room: Floats) -> Cleared:
    assert _library is not None
    room = np.ascontiguousarray(room, dtype=float)
    chosen, prices = np.empty(len(found.jobs), dtype=np.int64), np.empty(len(room))
    work = np.empty(2 * len(room))
    market = _Market(
        *found.gains.shape, len(room), *map(_address, (found.gains, found.gpus, found.kinds, room))
    )
    gain = _library.boa_clear(
        ctypes.byref(market),
        *map(ctypes.c_double, (NOTHING, LEAST, LIGHT)),
        ctypes.c_int64(HALVINGS),
        ctypes.c_int64(ROUNDS),
        *(ctypes.c_void_p(_address(array)) for array in (chosen, prices, work)),
    )
    return Cleared(chosen, float(gain), prices)


def _address(array: NDArray[Any]) -> int:
    return array.ctypes.data


def cleared_in_python(found: Prospects, room: Floats) -> Cleared:
    """The same without a compiler."""
    prices = _prices(found, room)
    chosen = _filled(found, room, _choice(found, prices))
    gains = np.where(chosen >= 0, found.gains[np.arange(len(chosen)), chosen], 0.0)
    return Cleared(chosen, float(gains.sum()), prices)


def _choice(found: Prospects, prices: Floats) -> Ints:
    scores = found.gains - prices[found.kinds] * found.gpus
    best = scores.argmax(axis=1)
    return np.where(scores[np.arange(len(best)), best] > NOTHING, best, -1)


def _taken(found: Prospects, chosen: Ints, types: int) -> Floats:
    rows = np.flatnonzero(chosen >= 0)
    columns = chosen[rows]
    return np.bincount(
        found.kinds[rows, columns], weights=found.gpus[rows, columns], minlength=types
    )


def _prices(found: Prospects, room: Floats) -> Floats:
    prices = np.zeros(len(room))
    highest = max(float((found.gains / found.gpus).max()), NOTHING) * 1.01
    for _ in range(ROUNDS):
        over = _taken(found, _choice(found, prices), len(room)) > room
        if not over.any():
            return prices
        for kind in np.flatnonzero(over):
            low, high = float(prices[kind]), highest
            for _ in range(HALVINGS):
                prices[kind] = (low + high) / 2
                if _taken(found, _choice(found, prices), len(room))[kind] > room[kind]:
                    low = float(prices[kind])
                else:
                    high = float(prices[kind])
            prices[kind] = high
    over = _taken(found, _choice(found, prices), len(room)) > room
    return np.where(over, highest, prices)


def _filled(found: Prospects, room: Floats, chosen: Ints) -> Ints:
    """With what is left over, each time to whoever gains most by the GPU."""
    rows, chosen = np.arange(len(chosen)), chosen.copy()
    free = room - _taken(found, chosen, len(room))
    while True:
        has = np.where(chosen >= 0, found.gains[rows, chosen], 0.0)
        own = np.where(chosen >= 0, found.gpus[rows, chosen], 0.0)
        on = np.where(chosen >= 0, found.kinds[rows, chosen], -1)
        extra = found.gpus - np.where(found.kinds == on[:, None], own[:, None], 0.0)
        more = found.gains - has[:, None]
        good = (more > LEAST) & (extra <= free[found.kinds])
        if not good.any():
            return chosen
        ratio = np.where(good, more / np.maximum(extra, LIGHT), -1.0)
        job, column = divmod(int(ratio.argmax()), ratio.shape[1])
        if chosen[job] >= 0:
            free[on[job]] += own[job]
        chosen[job] = column
        free[found.kinds[job, column]] -= found.gpus[job, column]
