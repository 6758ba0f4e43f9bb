"""Learning a running job's throughput from the few configurations it has run in, as Pollux does.

A job starts on little and has seen little, so what it has not seen is assumed to cost nothing:
a job that never left one GPU is taken to scale perfectly. That optimism makes a scheduler try
the next size, which then corrects it. (`fit.py` is for full profiles and assumes nothing.)

Minimised are the roots of the mean squared log errors of accumulation and step times, plus small
penalties on γ and on β/α that decide what the samples leave open. Each round replaces the two
roots by the quadratics that touch them from above, and takes a damped Gauss-Newton step within
the bounds. The roots are smoothed by SMOOTH, since a perfect fit would be a kink.
"""

from array import array
from collections.abc import Sequence
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from itertools import chain
from math import inf, sqrt

import numpy as np

from boa import compiled
from boa.goodput.throughput import Throughput, accumulation_time, network_time
from boa.model.speedup import Floats

LEAST_TIME = 1e-8
MOST_GAMMA = 10.0
GAMMA_WEIGHT = 1e-3
SLOPE_WEIGHT = 1e-2
ACROSS_OVER_WITHIN = 1.1
"""The network across nodes, if never measured, is at least this much slower than within one."""

# The constants of the descent are repeated in _learning.c.
SMOOTH = 1e-6
"""A log error this small is as good as none."""
ENOUGH = 1e-8
"""A relative gain this small ends the descent."""
MAX_ITERATIONS = 60
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-9, 1e6

ALPHA_C, BETA_C, ALPHA_N, BETA_N, ALPHA_R, BETA_R, GAMMA = range(7)

_library = compiled.load(__file__, "_learning")
if _library is not None:
    _library.boa_learn.argtypes = (c_int64, c_void_p, c_void_p, c_void_p, c_void_p)
    _library.boa_learn.restype = None
COMPILED = _library is not None


@dataclass(frozen=True, slots=True)
class StepTime:
    """Measured times of one configuration of a job; hashable, so that fits can be kept."""

    nodes: int
    gpus: int
    local_batch: int
    step_s: float
    accumulation_s: float


Row = tuple[int, int, int, float, float]
Box = tuple[list[float], list[float]]


def learn(samples: Sequence[StepTime]) -> Throughput:
    """The constants that explain the samples best, optimistic about what they do not show."""
    rows = _rows(samples)
    box = _bounds(rows)
    descend = _compiled_descend if COMPILED else _descend
    found = descend(rows, box, _start(rows, box))
    if rows[-1][0] <= 1:  # the last has the most nodes
        found[ALPHA_N] = max(found[ALPHA_N], ACROSS_OVER_WITHIN * found[ALPHA_R])
        found[BETA_N] = max(found[BETA_N], ACROSS_OVER_WITHIN * found[BETA_R])
    return Throughput.of(found)


def _rows(samples: Sequence[StepTime]) -> list[Row]:
    """The samples as plain numbers, sorted: their order must not change even the rounding."""
    rows = sorted((s.nodes, s.gpus, s.local_batch, s.step_s, s.accumulation_s) for s in samples)
    if not rows:
        raise ValueError("nothing to learn from: no samples")
    for row in rows:
        nodes, gpus, batch, step, accumulation = row
        if not (
            1 <= nodes <= gpus
            and batch >= 1
            and LEAST_TIME <= step < inf
            and LEAST_TIME <= accumulation < inf
        ):
            raise ValueError(f"not a measured configuration: {StepTime(*row)}")
    return rows


def _bounds(rows: list[Row]) -> Box:
    """Where each constant may lie; one that the samples cannot show has a single place to be."""
    low, high = [LEAST_TIME] * 6 + [1.0], [inf] * 6 + [MOST_GAMMA]
    if len({row[2] for row in rows}) == 1:
        low[ALPHA_C] = high[ALPHA_C] = sum([row[4] for row in rows]) / len(rows) / 2
    most_across = max([row[1] for row in rows if row[0] > 1], default=1)
    most_within = max([row[1] for row in rows if row[0] <= 1], default=1)
    for gpus, alpha, beta in ((most_across, ALPHA_N, BETA_N), (most_within, ALPHA_R, BETA_R)):
        if gpus <= 1:
            high[alpha] = LEAST_TIME
        if gpus <= 2:
            high[beta] = LEAST_TIME
    return low, high


def _start(rows: list[Row], box: Box) -> list[float]:
    """A first guess near the samples: a line through the passes, the mean wait for each network.

    On one GPU the model has no synchronisation, though a little is measured, and everything
    between pass and step explains both equally well. The guess is the middle, and stays there.
    """
    passes: list[tuple[int, float]] = []
    across: list[float] = []
    within: list[float] = []
    for nodes, gpus, batch, step, accumulation in rows:
        if gpus > 1:
            waits = across if nodes > 1 else within
            waits.append(max(step - accumulation, 0.01 * step))
            passes.append((batch, accumulation))
        else:
            passes.append((batch, sqrt(step * accumulation)))
    start = [*_line(passes, box), *_network(across), *_network(within), 1.001]
    return [min(max(x, least), most) for x, least, most in zip(start, *box, strict=True)]


def _network(waits: list[float]) -> tuple[float, float]:
    """α and β of a network that takes the mean wait, little of it for each further GPU."""
    mean = sum(waits) / max(len(waits), 1)
    return 0.9 * mean, 0.03 * mean


def _line(passes: list[tuple[int, float]], box: Box) -> tuple[float, float]:
    """Offset and slope of the line of least relative error, both kept positive."""
    weights = [1.0 / (time * time) for _, time in passes]
    at = rise = spread = total = 0.0
    for weight, (batch, _) in zip(weights, passes, strict=True):
        total += weight
        at += weight * batch
    batch_mean, time_mean = at / total, sum(1.0 / time for _, time in passes) / total
    fixed, most = box[0][ALPHA_C], box[1][ALPHA_C]
    if fixed == most:
        return fixed, (time_mean - fixed) / batch_mean
    for weight, (batch, time) in zip(weights, passes, strict=True):
        off = weight * (batch - batch_mean)
        spread += off * (batch - batch_mean)
        rise += off * time
    slope = rise / spread
    return (
        max(time_mean - slope * batch_mean, 0.05 * time_mean),
        max(slope, 0.05 * time_mean / batch_mean),
    )


def _compiled_descend(rows: list[Row], box: Box, start: list[float]) -> list[float]:
    """`_descend`, in C."""
    assert _library is not None
    x, low, high = array("d", start), array("d", box[0]), array("d", box[1])
    packed = array("d", chain.from_iterable(rows))
    _library.boa_learn(len(rows), *(a.buffer_info()[0] for a in (packed, low, high, x)))
    return x.tolist()


def _descend(rows: list[Row], box: Box, start: list[float]) -> list[float]:
    """Levenberg-Marquardt within the box, to where the loss is least."""
    points, (low, high) = np.array(rows, dtype=float).T, np.array(box)
    x, damping = np.array(start), FIRST_DAMPING
    loss, gradient, curvature = _look(x, points)
    for _ in range(MAX_ITERATIONS):
        free = np.flatnonzero(np.where(gradient > 0, x > low, x < high))
        step = np.zeros(len(x))
        step[free] = _damped_step(curvature[np.ix_(free, free)], gradient[free], damping)
        candidate = np.minimum(np.maximum(x - step, low), high)
        new_loss, new_gradient, new_curvature = _look(candidate, points)
        gain = loss - new_loss
        if gain > 0:
            x, loss, gradient, curvature = candidate, new_loss, new_gradient, new_curvature
            damping = max(damping / 5, LEAST_DAMPING)
        else:
            damping *= 4
        if abs(gain) <= ENOUGH * loss or damping > MOST_DAMPING:
            break
    return [float(value) for value in x]


def _damped_step(curvature: Floats, gradient: Floats, damping: float) -> Floats:
    """Marquardt's step, from the system scaled to a unit diagonal."""
    scale = 1.0 / np.sqrt(np.diag(curvature) + 1e-300)
    system = curvature * np.outer(scale, scale) + damping * np.eye(len(scale))
    return np.asarray(np.linalg.solve(system, gradient * scale) * scale)


def _look(x: Floats, points: Floats) -> tuple[float, Floats, Floats]:
    """The loss at x, its gradient, and the curvature of the quadratics that touch it."""
    loss, gradient, curvature = _penalties(x)
    for residuals, jacobian in _errors(x, points):
        n = len(residuals)
        root = sqrt(residuals @ residuals / n + SMOOTH**2)
        loss += root
        gradient += jacobian @ residuals / (n * root)
        curvature += jacobian @ jacobian.T / (n * root)
    return loss, gradient, curvature


def _penalties(x: Floats) -> tuple[float, Floats, Floats]:
    """Penalties for a γ over 1, and for networks that slow down much with every GPU."""
    excess = x[GAMMA] - 1.0
    loss, gradient, curvature = GAMMA_WEIGHT * excess**2, np.zeros(7), np.zeros((7, 7))
    gradient[GAMMA], curvature[GAMMA, GAMMA] = 2 * GAMMA_WEIGHT * excess, 2 * GAMMA_WEIGHT
    for alpha, beta in ((ALPHA_N, BETA_N), (ALPHA_R, BETA_R)):
        ratio, by = x[beta] / x[alpha], np.zeros(7)
        by[alpha], by[beta] = -ratio / x[alpha], 1.0 / x[alpha]
        loss += SLOPE_WEIGHT * ratio**2
        gradient += 2 * SLOPE_WEIGHT * ratio * by
        curvature += 2 * SLOPE_WEIGHT * np.outer(by, by)
    return float(loss), gradient, curvature


def _errors(x: Floats, points: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Log errors of the passes and of the steps, each with its derivatives by the constants.

    With q the smaller of compute and network time over the larger, the step's logarithm is
    log(larger) + log(1 + q^γ)/γ.
    """
    nodes, gpus, batch, step_s, accumulation_s = points
    model, gamma = Throughput.of(x), x[GAMMA]
    compute, network = accumulation_time(model, batch), network_time(model, nodes, gpus)
    larger = np.maximum(compute, network)
    log_q = np.log(np.maximum(np.minimum(compute, network) / larger, 1e-300))
    power = np.exp(gamma * log_q)
    extra, smaller = np.log1p(power) / gamma, power / (1.0 + power)
    share = np.where(compute >= network, 1.0 - smaller, smaller)

    by_pass, by_step = np.zeros((7, len(batch))), np.zeros((7, len(batch)))
    by_pass[ALPHA_C], by_pass[BETA_C] = 1.0 / compute, batch / compute
    by_step[:ALPHA_N] = by_pass[:ALPHA_N] * share
    across, within, beyond = nodes > 1, (nodes <= 1) & (gpus > 1), np.maximum(gpus - 2, 0)
    by_network = (1.0 - share) / np.where(network > 0, network, 1.0)
    by_step[ALPHA_N], by_step[BETA_N] = across * by_network, across * by_network * beyond
    by_step[ALPHA_R], by_step[BETA_R] = within * by_network, within * by_network * beyond
    by_step[GAMMA] = (smaller * log_q - extra) / gamma
    of_pass = np.log(compute / accumulation_s)
    return (of_pass, by_pass), (np.log(larger / step_s) + extra, by_step)
