"""The market: GPUs that are there go to whoever gains most by them.

A price per GPU of every type, raised until all that jobs would take at it fits; what is left over
then goes, each time, to whoever gains most by a GPU. `_clearing.c` comes to the same, quicker.
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
ROUNDS = 25
"""Sweeps over the GPU types in which their prices settle."""
NOTHING = 1e-12
"""Gains that are no more than rounding, when a price is looked for …"""
LEAST = 1e-9
"""… and when what is left over is given out."""
LIGHT = 0.25
"""GPUs that a change counts as which needs fewer or none."""


@dataclass(frozen=True, slots=True, eq=False)
class Cleared:
    """Outcome of a market: a column of its states for every job, -1 for waiting."""

    chosen: Ints
    gain: float
    """Seconds gained per second, by all jobs together."""
    prices: Floats
    """Price of a GPU of every type: seconds per second."""


class _Market(ctypes.Structure):
    _fields_ = (
        ("jobs", ctypes.c_int64),
        ("states", ctypes.c_int64),
        ("kinds", ctypes.c_int64),
        ("gains", ctypes.c_void_p),
        ("gpus", ctypes.c_void_p),
        ("kind", ctypes.c_void_p),
        ("nothing", ctypes.c_double),
        ("least", ctypes.c_double),
        ("light", ctypes.c_double),
        ("halvings", ctypes.c_int64),
        ("rounds", ctypes.c_int64),
        ("corners", ctypes.c_void_p),
        ("first", ctypes.c_void_p),
        ("work", ctypes.c_void_p),
        ("amounts", ctypes.c_void_p),
        ("highest", ctypes.c_double),
    )


_library = compiled.load(__file__, "_clearing")
COMPILED = _library is not None
if _library is not None:
    _library.boa_clear.argtypes = (
        ctypes.c_void_p,
        ctypes.c_int64,
        *[ctypes.c_void_p] * 4,
    )
    _library.boa_clear.restype = None


def cleared(found: Prospects, room: Floats) -> Cleared:
    """`room`: GPUs of every type."""
    if not found.jobs:
        return Cleared(np.zeros(0, dtype=np.int64), 0.0, np.zeros(len(room)))
    key = f"cleared {room.tolist()}"
    known: Cleared | None = found.kept.get(key)
    if known is None:
        known = found.kept[key] = _cleared(found, room)
    return known


def _cleared(found: Prospects, room: Floats) -> Cleared:
    if _library is None:
        return cleared_in_python(found, room)
    chosen, prices, gains = _compiled(found, room[None, :])
    return Cleared(chosen, float(gains[0]), prices[0])


def truly_gained(found: Prospects, outcome: Cleared) -> float:
    """The gain of an outcome, without what is counted for jobs that are to run at last."""
    if found.urged is None:
        return outcome.gain
    return outcome.gain - float(found.urged[outcome.chosen >= 0].sum())


def gained(found: Prospects, rooms: Floats) -> Floats:
    """Gain of all jobs together in each of these rooms: as `cleared`, row by row, but quicker."""
    if not found.jobs:
        return np.zeros(len(rooms))
    if _library is None:
        return np.array([cleared_in_python(found, room).gain for room in rooms])
    return _compiled(found, rooms)[2]


class _Kernel:
    """A market as the C kernel takes it, with the memory that it works in."""

    def __init__(self, found: Prospects, kinds: int) -> None:
        jobs, states = found.gains.shape
        sizes = (jobs * states, jobs * kinds + 1, 4 * jobs, 2 * jobs + 3 * kinds)
        memory = np.empty(sum(sizes), dtype=np.int64)  # the last part of it holds doubles
        arrays = (found.gains, found.gpus, found.kinds)
        corners = memory.ctypes.data
        first = corners + 8 * sizes[0]
        work = first + 8 * sizes[1]
        self._market = _Market(
            *(jobs, states, kinds),
            *(array.ctypes.data for array in arrays),
            *(NOTHING, LEAST, LIGHT, HALVINGS, ROUNDS),
            *(corners, first, work, work + 8 * sizes[2]),
        )
        self._lives_as_long = (arrays, memory)
        self.address = ctypes.addressof(self._market)


def _compiled(found: Prospects, rooms: Floats) -> tuple[Ints, Floats, Floats]:
    """Columns that jobs are given in the last room; prices and gain of every room."""
    assert _library is not None
    rooms = np.ascontiguousarray(rooms, dtype=float)
    count, kinds = rooms.shape
    kernel = found.kept.get("kernel")
    if kernel is None:
        kernel = found.kept["kernel"] = _Kernel(found, kinds)
    chosen, outcome = np.empty(len(found.gains), dtype=np.int64), np.empty(count * (kinds + 1))
    prices = outcome.ctypes.data
    _library.boa_clear(
        kernel.address,
        count,
        rooms.ctypes.data,
        chosen.ctypes.data,
        prices,
        prices + 8 * count * kinds,
    )
    split = count * kinds
    return chosen, outcome[:split].reshape(count, kinds), outcome[split:]


def cleared_in_python(found: Prospects, room: Floats) -> Cleared:
    """The same without a compiler."""
    prices = _prices(found, room)
    chosen = _filled(found, room, _evicted(found, room, _choice(found, prices)))
    gains = np.where(chosen >= 0, found.gains[np.arange(len(chosen)), chosen], 0.0)
    return Cleared(chosen, float(gains.sum()), prices)


def _choice(found: Prospects, prices: Floats) -> Ints:
    scores = found.gains - prices[found.kinds] * found.gpus
    best = scores.argmax(axis=1)
    return np.where(scores[np.arange(len(best)), best] > NOTHING, best, -1)


def _taken(found: Prospects, chosen: Ints, types: int) -> Floats:
    rows = np.flatnonzero(chosen >= 0)
    columns = chosen[rows]
    kinds, gpus = found.kinds[rows, columns], found.gpus[rows, columns]
    return np.asarray(np.bincount(kinds, weights=gpus, minlength=types), dtype=float)


def _prices(found: Prospects, room: Floats) -> Floats:
    highest = max(float((found.gains / found.gpus).max()), NOTHING) * 1.01
    prices = np.where(room > 0, 0.0, highest)  # of what is not there nobody is to dream
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
    return prices


def _evicted(found: Prospects, room: Floats, chosen: Ints) -> Ints:
    """Prices may chase each other over jobs that would as soon have one type as another. Whoever
    gains least by a GPU of a type that is then still too much asked for leaves it."""
    chosen = chosen.copy()
    for kind in np.flatnonzero(_taken(found, chosen, len(room)) > room):
        rows = np.flatnonzero((chosen >= 0) & (_at(found.kinds, chosen) == kind))
        each = _at(found.gains, chosen)[rows] / _at(found.gpus, chosen)[rows]
        for row in rows[np.argsort(each, kind="stable")]:
            if _taken(found, chosen, len(room))[kind] <= room[kind]:
                break
            chosen[row] = -1
    return chosen


def _at(values: NDArray[Any], chosen: Ints) -> NDArray[Any]:
    return values[np.arange(len(chosen)), chosen]


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
