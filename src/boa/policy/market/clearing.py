"""The market: GPUs that are there go to whoever gains most by them.

A price per GPU of every type, raised until all that jobs would take at it fits; what is left over
then goes, GPU by GPU, to whoever gains most.
"""

from dataclasses import dataclass

import numpy as np

from boa.model.speedup import Floats
from boa.policy.market.prospects import Prospects

HALVINGS = 24
ROUNDS = 4
"""Sweeps over the GPU types in which their prices settle."""
NOTHING = 1e-12
"""Gains that are no more than rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Cleared:
    """What every job gets: a column of its states, -1 for waiting."""

    chosen: "np.ndarray[tuple[int], np.dtype[np.intp]]"
    gain: float
    """Seconds gained per second, by all jobs together."""
    prices: Floats
    """Of a GPU of every type: seconds per second."""


def cleared(found: Prospects, room: Floats, prices: Floats | None = None) -> Cleared:
    """`room`: GPUs of every type. `prices`: a guess, by which it is quicker."""
    count = len(found.jobs)
    if not count:
        return Cleared(np.zeros(0, dtype=np.intp), 0.0, np.zeros(len(room)))
    rows = np.arange(count)
    prices = _prices(found, room)
    chosen = _choice(found, prices)
    chosen = _filled(found, room, chosen)
    gains = np.where(chosen >= 0, found.gains[rows, chosen], 0.0)
    return Cleared(chosen, float(gains.sum()), prices)


def _choice(found: Prospects, prices: Floats) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    scores = found.gains - prices[found.kinds] * found.gpus
    best = scores.argmax(axis=1)
    return np.where(scores[np.arange(len(best)), best] > NOTHING, best, -1)


def _taken(
    found: Prospects, chosen: "np.ndarray[tuple[int], np.dtype[np.intp]]", types: int
) -> Floats:
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
            break
        for kind in np.flatnonzero(over):
            low, high = prices[kind], highest
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                prices[kind] = middle
                if _taken(found, _choice(found, prices), len(room))[kind] > room[kind]:
                    low = middle
                else:
                    high = middle
            prices[kind] = high
    else:
        prices = np.where(_taken(found, _choice(found, prices), len(room)) > room, highest, prices)
    return prices


def _filled(
    found: Prospects, room: Floats, chosen: "np.ndarray[tuple[int], np.dtype[np.intp]]"
) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    """With what is left over, each time to whoever gains most by the GPU."""
    rows = np.arange(len(chosen))
    free = room - _taken(found, chosen, len(room))
    while (free > 0).any():
        has = np.where(chosen >= 0, found.gains[rows, chosen], 0.0)
        own = np.where(chosen >= 0, found.gpus[rows, chosen], 0.0)
        on = np.where(chosen >= 0, found.kinds[rows, chosen], -1)
        same = found.kinds == on[:, None]
        extra = found.gpus - np.where(same, own[:, None], 0.0)
        more = found.gains - has[:, None]
        good = (more > 1e-9) & (extra <= free[found.kinds])
        if not good.any():
            return chosen
        ratio = np.where(good, more / np.maximum(extra, 0.25), -1.0)
        job, column = divmod(int(ratio.argmax()), ratio.shape[1])
        if chosen[job] >= 0:
            free[on[job]] += own[job]
        chosen[job] = column
        free[found.kinds[job, column]] -= found.gpus[job, column]
    return chosen
