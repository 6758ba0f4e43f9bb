"""Which batch size a job runs at, from what it has measured itself: goodput fitted online."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boa.goodput.fit import Measurements, fit_throughput
from boa.goodput.throughput import Throughput, iteration_time
from boa.goodput.tuning import (
    Gains,
    Limits,
    Setting,
    Stretch,
    best_settings,
    first_setting,
    gains_of,
    grid,
)
from boa.model.speedup import Floats
from boa.train.torch.noise import Statistics

BETTER = 1.05
"""A change has to promise this much more goodput, and one pass instead of two on one GPU."""
GROWTH = 2
"""Factor over the largest batch tried so far that one GPU may take next, in a pass and in a
step."""
NEWS = 0.02
"""A measured time that has moved less is no reason to fit again."""
FADING = 0.2
"""Weight of the newest window among those of the same setting, at least."""
MOST_KEPT = 64
"""Settings remembered: those that ran last."""


@dataclass(frozen=True, slots=True)
class Where:
    """One setting on one placement."""

    nodes: int
    gpus: int
    setting: Setting


@dataclass(frozen=True, slots=True)
class Observed:
    """Measured times; NaN where nothing was measured."""

    iteration_s: float
    accumulation_s: float
    windows: int


class Tuner:
    """Learns how long iterations take, and chooses by predicted goodput: gain / iteration time.

    `local_batch`: samples per GPU and pass, at least and at most. `gpu_type`: whose times these
    are; what was measured on other types is kept, and not used.
    """

    def __init__(
        self,
        *,
        base_batch: int,
        max_batch: int,
        local_batch: tuple[int, int],
        gpu_type: str = "",
    ) -> None:
        least, most = local_batch
        self._limits = Limits(
            base_batch=base_batch,
            max_batch=max_batch,
            min_local=least,
            max_local=most,
            split_alone=False,
        )
        self._observed: dict[Where, Observed] = {}  # what ran last is last
        self._gpu_type, self._other_types = gpu_type, dict[str, Any]()
        self._fit: tuple[dict[Where, Observed], Throughput] | None = None

    def observe(
        self,
        *,
        nodes: int,
        gpus: int,
        local_batch: int,
        passes: int,
        iteration_s: float,
        accumulation_s: float | None = None,
    ) -> None:
        """The mean over a window of iterations; `accumulation_s`: of one pass, if it was measured.

        On one GPU it follows. What is not a positive time is passed over.
        """
        if accumulation_s is None:
            accumulation_s = iteration_s / (passes + 1) if gpus == 1 else np.nan
        if not (0 < iteration_s < np.inf) or accumulation_s <= 0:
            return
        where = Where(nodes, gpus, Setting(local_batch, passes))
        new = Observed(iteration_s, accumulation_s, 1)
        before = self._observed.pop(where, None)
        self._observed[where] = new if before is None else _mixed(before, new)
        while len(self._observed) > MOST_KEPT:
            del self._observed[next(iter(self._observed))]

    def choose(self, *, nodes: int, gpus: int, statistics: Statistics | None) -> Setting:
        """The setting of the best predicted goodput, or the current one if that is nearly as good.

        The current one is what ran last on this placement. Before anything is known: B0, or the
        least local size on every GPU if that is more.
        """
        current = self._current(nodes, gpus)
        first = first_setting(self._limits, gpus)
        if statistics is None or self.throughput is None:
            return current or first
        best = self._best(nodes, gpus, statistics)
        if current is None:
            return best or first
        if best is None:
            return current
        rates = [self._predicted(nodes, gpus, at, statistics) for at in (best, current)]
        return best if rates[0] > BETTER * rates[1] else current

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def throughput(self) -> Throughput | None:
        """The fitted model; fitted again when something was measured that it has not seen."""
        if not self._observed:
            return None
        if self._fit is None or _news(self._fit[0], self._observed):
            self._fit = dict(self._observed), fit_throughput(_measurements(self._observed))
        return self._fit[1]

    def goodput(
        self, *, nodes: int, gpus: int, setting: Setting, statistics: Statistics | None
    ) -> float | None:
        """Predicted progress per second, in iterations at B0; None while nothing is known."""
        if statistics is None or self.throughput is None:
            return None
        return self._predicted(nodes, gpus, setting, statistics)

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers, for a checkpoint: what was measured at one width serves at another."""
        own = {"observed": [_row(where, seen) for where, seen in self._observed.items()]}
        return {"types": {**self._other_types, self._gpu_type: own}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._other_types, self._fit = dict(state["types"]), None
        own = self._other_types.pop(self._gpu_type, {"observed": []})
        self._observed = dict(_of_row(row) for row in own["observed"])

    def _current(self, nodes: int, gpus: int) -> Setting | None:
        """The setting that ran last on this placement, if it is still allowed."""
        for where in reversed(self._observed):
            if (where.nodes, where.gpus) == (nodes, gpus):
                at, limits = where.setting, self._limits
                fits = at.local_batch <= limits.max_local and at.total(gpus) <= limits.max_batch
                return at if fits else None
        return None

    def _best(self, nodes: int, gpus: int, statistics: Statistics) -> Setting | None:
        """The best setting of those allowed now; None if none is.

        On one GPU only several passes tell the gradient's noise exactly. They are preferred where
        they cost next to nothing: not where a GPU takes a larger batch in hardly more time.
        """
        limits = self._reach(gpus)
        best = self._best_within(limits, nodes, gpus, statistics)
        if gpus > 1 or best is None:
            return best
        split = self._best_within(replace(limits, split_alone=True), nodes, gpus, statistics)
        if split is None:
            return best
        rates = [self._predicted(nodes, gpus, at, statistics) for at in (best, split)]
        return best if rates[0] > BETTER * rates[1] else split

    def _reach(self, gpus: int) -> Limits:
        """How far from what was tried at any width the next choice may be."""
        first = first_setting(self._limits, gpus)
        tried = [where.setting for where in self._observed]
        local = GROWTH * max((at.local_batch for at in tried), default=0)
        total = GROWTH * max((at.total(1) for at in tried), default=0) * gpus
        return replace(
            self._limits,
            max_local=min(self._limits.max_local, max(local, first.local_batch)),
            max_batch=min(self._limits.max_batch, max(total, first.total(gpus))),
        )

    def _best_within(
        self, limits: Limits, nodes: int, gpus: int, statistics: Statistics
    ) -> Setting | None:
        assert self.throughput is not None
        options = grid(limits, gpus)
        if not options.allowed[gpus - 1].any():
            return None
        sizes = (options.local_batch if gpus == 1 else options.total)[gpus - 1]
        longer = self._stretch(nodes, gpus, sizes)
        return best_settings(
            self.throughput,
            self._gains(statistics),
            limits,
            nodes=nodes,
            gpus=gpus,
            stretch=Stretch(longer, longer),
        )[0]

    def _gains(self, statistics: Statistics) -> Gains:
        return gains_of(self._limits.base_batch, statistics.grad_sqr, statistics.grad_var)

    def _predicted(self, nodes: int, gpus: int, setting: Setting, statistics: Statistics) -> float:
        assert self.throughput is not None
        gain = self._gains(statistics)(np.array([float(setting.total(gpus))]))
        stretch = self._stretch(nodes, gpus, np.array([_size(gpus, setting)]))
        seconds = _seconds(self.throughput, nodes, gpus, setting)
        return float((gain / (seconds * stretch))[0])

    def _stretch(self, nodes: int, gpus: int, sizes: Floats) -> Floats:
        """Measured over fitted iteration time on this placement, by `_size`.

        Between the sizes that ran it is linear in logarithms, beyond them flat. The best of a
        model is where it errs; without this a choice would run into the same error for ever.
        """
        assert self.throughput is not None
        errors: dict[float, list[float]] = {}
        for where, seen in self._observed.items():
            if (where.nodes, where.gpus) == (nodes, gpus):
                fitted = _seconds(self.throughput, nodes, gpus, where.setting)
                at = float(np.log(_size(gpus, where.setting)))
                errors.setdefault(at, []).append(float(np.log(seen.iteration_s / fitted)))
        if not errors:
            return np.ones_like(sizes)
        known = sorted(errors)
        means = [float(np.mean(errors[size])) for size in known]
        return np.exp(np.interp(np.log(np.maximum(sizes, 1.0)), known, means))


def _size(gpus: int, setting: Setting) -> float:
    """By which errors of the model are told apart: one GPU does nothing but passes."""
    return float(setting.local_batch if gpus == 1 else setting.total(gpus))


def _seconds(model: Throughput, nodes: int, gpus: int, setting: Setting) -> float:
    values = map(np.float64, (nodes, gpus, setting.local_batch, setting.passes))
    return float(iteration_time(model, *values))  # type: ignore[arg-type]


def _mixed(before: Observed, new: Observed) -> Observed:
    """The mean of the first few windows, then a fading one."""
    windows = before.windows + 1
    weight = max(1.0 / windows, FADING)
    iteration_s = before.iteration_s + weight * (new.iteration_s - before.iteration_s)
    accumulation_s = before.accumulation_s + weight * (new.accumulation_s - before.accumulation_s)
    if np.isnan(accumulation_s):  # at most one of the two was measured
        known = [t for t in (new.accumulation_s, before.accumulation_s) if not np.isnan(t)]
        accumulation_s = known[0] if known else np.nan
    return Observed(iteration_s, accumulation_s, windows)


def _news(fitted: Mapping[Where, Observed], now: Mapping[Where, Observed]) -> bool:
    """Whether there is a new setting, or an old one takes another time than it took."""
    return any(
        where not in fitted or abs(seen.iteration_s / fitted[where].iteration_s - 1) > NEWS
        for where, seen in now.items()
    )


def _measurements(observed: Mapping[Where, Observed]) -> Measurements:
    rows = [_row(where, seen) for where, seen in observed.items()]
    nodes, gpus, local, passes, iteration, accumulation, _ = np.array(rows, dtype=float).T
    return Measurements(nodes, gpus, local, iteration, accumulation, passes)


def _row(where: Where, seen: Observed) -> list[float | None]:
    """As plain numbers; None for what was not measured."""
    at = where.setting
    accumulation_s = None if np.isnan(seen.accumulation_s) else seen.accumulation_s
    times = seen.iteration_s, accumulation_s, seen.windows
    return [where.nodes, where.gpus, at.local_batch, at.passes, *times]


def _of_row(row: list[Any]) -> tuple[Where, Observed]:
    nodes, gpus, local_batch, passes, iteration_s, accumulation_s, windows = row
    known = np.nan if accumulation_s is None else accumulation_s
    where = Where(nodes, gpus, Setting(local_batch, passes))
    return where, Observed(iteration_s, known, windows)
