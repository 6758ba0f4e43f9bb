"""Prospects: what every job gains per second by each thing it could be given for a while.

Over the next D seconds a job makes the progress that a state allows, less the pause of getting
there; what is to come after is its value to go from there, at the price of money. The GPUs of
those D seconds are not charged here: they are there and paid for, and the market shares them out.
A gain is told against waiting D seconds without any GPU.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boa.model.cluster import Allocation, JobId, JobView
from boa.model.speedup import Floats
from boa.policy.market.worth import Worth
from boa.units import GpuName, Seconds

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Prospects:
    """One row per job, one column per state of its class, padded with states of no use."""

    jobs: tuple[JobId, ...]
    gains: Floats
    """Seconds gained per second, by job and state."""
    gpus: Floats
    """Width of every state."""
    kinds: Ints
    """GPU type of every state."""
    held: Ints
    """State that a job is on, as its column; -1: none of them."""
    states: tuple[tuple[tuple[GpuName, int], ...], ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job stands, beside its view."""

    view: JobView
    pause_left_s: Seconds
    """Seconds until it makes progress again where it is."""


def prospects(
    standings: Sequence[Standing], worths: Mapping[str, Worth], horizon_s: Seconds
) -> Prospects:
    """Jobs of classes without a worth are left out: nothing is known of them yet."""
    by_class: dict[str, list[Standing]] = {}
    for standing in standings:
        if standing.view.job_class in worths:
            by_class.setdefault(standing.view.job_class, []).append(standing)
    total = sum(map(len, by_class.values()))
    most = max((len(worths[name].values) for name in by_class), default=1)
    gains, gpus = np.full((total, most), -1e30), np.full((total, most), 1e9)
    kinds, held = np.zeros((total, most), dtype=np.int64), np.full(total, -1, dtype=np.int64)
    jobs: list[JobId] = []
    states = []
    for name, here in by_class.items():
        worth, at = worths[name], len(jobs)
        rows = slice(at, at + len(here))
        found, on = _gains(here, worth, horizon_s)
        count = found.shape[1]
        gains[rows, :count], held[rows] = found, on
        gpus[rows, :count] = worth.course.widths
        kinds[rows, :count] = worth.course.kinds
        jobs += [standing.view.id for standing in here]
        states += [worth.course.states] * len(here)
    return Prospects(
        jobs=tuple(jobs), gains=gains, gpus=gpus, kinds=kinds, held=held, states=tuple(states)
    )


def _gains(
    standings: Sequence[Standing], worth: Worth, horizon_s: Seconds
) -> "tuple[Floats, np.ndarray[tuple[int], np.dtype[np.int64]]]":
    course = worth.course
    last = len(course.times) - 1
    epochs = np.array([min(s.view.epoch, last) for s in standings], dtype=np.int64)
    left = np.array([min(max(s.view.left, 0.0), 1.0) for s in standings])
    held = np.array([_held(s, worth) for s in standings], dtype=np.int64)
    pauses = np.full((len(standings), len(course.states)), course.rescale_s)
    stays = np.flatnonzero(held >= 0)
    pauses[stays, held[stays]] = [standings[n].pause_left_s for n in stays]
    waits = worth.weight * horizon_s + worth.starts(epochs, left)
    spent = _spent(worth, epochs, left, pauses, horizon_s)
    _forbid(spent, standings, worth)
    return (waits[:, None] - spent) / horizon_s, held


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
    return np.where(done, worth.weight * (pauses + end - began), after)


def _held(standing: Standing, worth: Worth) -> int:
    given = standing.view.allocation
    if given is None:
        return -1
    return worth.course.index.get((given.gpu, given.width), -1)


def _forbid(spent: Floats, standings: Sequence[Standing], worth: Worth) -> None:
    """States that a job's own user does not allow."""
    for n, standing in enumerate(standings):
        limits = standing.view.limits
        if limits is None:
            continue
        for column, (gpu, width) in enumerate(worth.course.states):
            if not limits.min <= width <= limits.max or (limits.types and gpu not in limits.types):
                spent[n, column] = 1e40


def later(
    standings: Sequence[Standing],
    given: Mapping[JobId, Allocation],
    worths: Mapping[str, Worth],
    seconds: Seconds,
) -> list[Standing]:
    """Where jobs will stand by then on what they are given now; those that end are left out."""
    found = []
    for standing in standings:
        view, worth = standing.view, worths.get(standing.view.job_class)
        held = given.get(view.id)
        column = -1 if worth is None or held is None else _column(held, worth)
        if worth is None or held is None or column < 0:
            found.append(Standing(replace(view, allocation=held), standing.pause_left_s))
            continue
        pause = standing.pause_left_s if held == view.allocation else worth.course.rescale_s
        reached, times = worth.course.reached[:, column], worth.course.times[:, column]
        epoch = min(view.epoch, len(times) - 1)
        at = reached[epoch] + (1.0 - view.left) * times[epoch] + max(seconds - pause, 0.0)
        if at >= reached[-1]:
            continue
        epoch = int(np.searchsorted(reached, at, side="right")) - 1
        left = (reached[epoch + 1] - at) / times[epoch]
        found.append(
            Standing(
                replace(view, allocation=held, epoch=epoch, left=float(left)),
                max(pause - seconds, 0.0),
            )
        )
    return found


def _column(held: Allocation, worth: Worth) -> int:
    return worth.course.index.get((held.gpu, held.width), -1)
