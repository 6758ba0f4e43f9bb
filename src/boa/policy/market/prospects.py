"""Prospects: what every job gains per second by each thing it could be given for a while.

Over the next D seconds a job makes the progress that a state allows, less the pause of getting
there; what is to come after is its value to go from there, at the price of money. The GPUs of
those D seconds are not charged here: they are there and paid for, and the market shares them out.
A gain is told against waiting D seconds without any GPU. `_prospects.c` does the same, quicker.
"""

import ctypes
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa import compiled
from boa.model.cluster import JobId
from boa.model.kept_rows import Ints
from boa.model.speedup import Floats
from boa.policy.market.standings import Standings
from boa.policy.market.worth import NEVER_S, Worth
from boa.units import GpuName, Seconds

__all__ = ["COMPILED", "Ints", "Prospects", "prospects", "prospects_in_python"]

CALM = 10.0
"""Rescaling times that a job still trains if it is rescaled to give back GPUs."""
NOTHING = 1e-6
"""Seconds per second by which GPUs that bring nothing count as worse than fewer."""
NO_USE = -1e30
"""The gain of states that a job does not have, cannot run on, or that its user does not allow."""
States: TypeAlias = tuple[tuple[GpuName, int], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Prospects:
    """One row per job, one column per state of its class, padded with states of no use."""

    jobs: tuple[JobId, ...]
    gains: Floats
    """Seconds gained per second, by job and state."""
    elsewhere: Floats
    """The same if the job were nowhere: it moves to every state, also to the one that it is on."""
    gpus: Floats
    """Width of every state."""
    kinds: Ints
    """GPU type of every state."""
    held: Ints
    """State that a job is on, as its column; -1: none of them."""
    states: tuple[States, ...]
    urged: Floats | None = None
    """Part of every job's gains that is none: it is only to run at last. None: there is no such."""
    kept: dict[str, Any] = field(init=False, repr=False, default_factory=dict)
    """Things made of it once, for whoever asks about it again."""


_library = compiled.load(__file__, "_prospects")
COMPILED = _library is not None
_RULES = (ctypes.c_double * 4)(NO_USE, NEVER_S, CALM, NOTHING)
if _library is not None:
    _library.boa_prospects.argtypes = (
        ctypes.c_void_p,
        ctypes.c_double,
        ctypes.c_int64,
        *[ctypes.c_void_p] * 5,
    )
    _library.boa_prospects.restype = None


def prospects(standings: Standings, horizon_s: Seconds, extra: Floats | None = None) -> Prospects:
    """`extra`: what jobs gain besides by any GPUs at all, one by one."""
    if _library is None:
        return prospects_in_python(standings, horizon_s, extra)
    found = np.empty((2, *standings.gpus.shape))
    address = found.ctypes.data
    _library.boa_prospects(
        standings.address,
        horizon_s,
        found.shape[2],
        _RULES,
        None if extra is None else extra.ctypes.data,
        None if standings.forbidden is None else standings.forbidden.ctypes.data,
        address,
        address + found.strides[0],
    )
    return _prospects(standings, found, extra)


def prospects_in_python(
    standings: Standings, horizon_s: Seconds, extra: Floats | None = None
) -> Prospects:
    """The same without a compiler."""
    found = np.full((2, *standings.gpus.shape), NO_USE)
    for worth, rows in standings.by_class():
        columns = len(worth.values)
        epochs, left = standings.epochs[rows], standings.left[rows]
        waits = worth.weight * horizon_s + worth.starts(epochs, left)
        pauses = np.full((len(epochs), columns), worth.course.rescale_s)
        spent = _spent(worth, epochs, left, pauses, horizon_s)
        found[1, rows, :columns] = (waits[:, None] - spent) / horizon_s
        held = standings.held[rows]
        stays = np.flatnonzero(held >= 0)
        pauses[stays, held[stays]] = standings.pauses[rows][stays]
        spent = _spent(worth, epochs, left, pauses, horizon_s)
        found[0, rows, :columns] = (waits[:, None] - spent) / horizon_s
        never = worth.course.times[epochs] >= NEVER_S
        for gains in found:
            gains[rows, :columns][never] = NO_USE
    if extra is not None:
        found += extra[:, None]  # next to which states of no use stay as they are
    if standings.forbidden is not None:
        np.copyto(found, NO_USE, where=standings.forbidden)
    if standings.lost is not None:
        _charge_lost_work(standings, found, horizon_s)
    _leave_useless(standings, found)
    _keep_short(standings, found)
    return _prospects(standings, found, extra)


def _prospects(standings: Standings, found: NDArray[np.float64], extra: Floats | None) -> Prospects:
    return Prospects(
        jobs=standings.jobs,
        gains=found[0],
        elsewhere=found[1],
        gpus=standings.gpus,
        kinds=standings.kinds,
        held=standings.held,
        states=standings.states,
        urged=extra,
    )


def _charge_lost_work(standings: Standings, found: NDArray[np.float64], horizon_s: Seconds) -> None:
    """A job that stays where it is keeps work that every stop would lose: it gains by that what so
    many seconds are worth there."""
    assert standings.lost is not None
    for worth, rows in standings.by_class():
        held, lost = standings.held[rows], standings.lost[rows]
        runs = rows.start + np.flatnonzero((held >= 0) & (lost > 0))
        columns = standings.held[runs]
        found[0, runs, columns] += standings.lost[runs] * worth.values[columns] / horizon_s


def _leave_useless(standings: Standings, found: NDArray[np.float64]) -> None:
    """GPUs that bring nothing are not taken, also where they are free: the job would pay for them.
    Who holds some gives them back, if it still trains for long enough."""
    for worth, rows in standings.by_class():
        narrower = worth.course.narrower
        if narrower is None:
            continue
        held, long = standings.held[rows], standings.ends_in[rows] > CALM * worth.course.rescale_s
        for column in np.flatnonzero(narrower >= 0).tolist():
            stays = (held == column) & ~long
            for gains in found:
                instead = gains[rows, narrower[column]] - NOTHING
                worse = ~stays & (instead > NO_USE / 2)
                gains[rows, column][worse] = np.minimum(gains[rows, column], instead)[worse]


def _keep_short(standings: Standings, found: NDArray[np.float64]) -> None:
    """A job that would end sooner than it is rescaled, lost work included, is not resized."""
    for worth, rows in standings.by_class():
        lost = 0.0 if standings.lost is None else standings.lost[rows]
        stop_s = worth.course.rescale_s + lost
        short = rows.start + np.flatnonzero(standings.ends_in[rows] < stop_s)
        held = standings.held[short]
        stays = found[0, short, held].copy()
        usable = stays > NO_USE / 2
        found[0, short[usable]] = NO_USE
        found[0, short[usable], held[usable]] = stays[usable]


def _spent(
    worth: Worth,
    epochs: Ints,
    left: Floats,
    pauses: Floats,
    horizon_s: Seconds,
) -> Floats:
    """The next `horizon_s` seconds, and the value to go after them; by job and state."""
    course = worth.course
    began = course.reached[epochs] + (1.0 - left)[:, None] * course.times[epochs]
    end = course.reached[-1]
    at = began + np.maximum(horizon_s - pauses, 0.0)
    reached = course.reached[1:]
    epoch = (at[:, None, :] >= reached[None, :, :]).sum(axis=1)
    done = epoch > len(course.times) - 1
    epoch = np.minimum(epoch, len(course.times) - 1)
    column = np.arange(len(course.states))[None, :]
    to_come = reached[epoch, column] - at
    stays = worth.values * (to_come + np.maximum(pauses - horizon_s, 0.0))
    stays += worth.afters[epoch, column]
    leaves = worth.starts(epoch, to_come / course.times[epoch, column])
    after = worth.weight * horizon_s + np.minimum(stays, leaves)
    return np.asarray(np.where(done, worth.weight * (pauses + end - began), after))
