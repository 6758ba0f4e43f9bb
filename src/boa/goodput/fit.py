"""Fitting the throughput model to measured step times: robust, bounded, the same every time.

Step and accumulation times are compared on a log scale (a relative error counts the same for a
fast and a slow configuration) under a soft-L1 loss (a stray measurement pulls with bounded
force). Seven log-parameters, Levenberg-Marquardt with box bounds, several starts.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from boa.goodput.throughput import Throughput, accumulation_time, iteration_time, network_time
from boa.model.speedup import Floats

SOFT = 0.05
"""Log errors well under this count squared, well over it absolutely."""
LEAST_TIME = 1e-8
MOST_TIME = 1e4
MOST_GAMMA = 10.0
MAX_ITERATIONS = 300
POLISHING_STEPS = 6

_LOW = np.log([LEAST_TIME] * 6 + [1.0])
_HIGH = np.log([MOST_TIME] * 6 + [MOST_GAMMA])


@dataclass(frozen=True, slots=True)
class Measurements:
    """Measured configurations of one model on one GPU type, one entry each."""

    nodes: Floats
    gpus: Floats
    local_batch: Floats
    step_s: Floats
    """Seconds of a step; of a whole iteration where `passes` are given."""
    accumulation_s: Floats
    """Step time less synchronisation: what one accumulation pass takes. NaN: not known."""
    passes: Floats | None = None
    """Accumulation passes before the step, within `step_s`; none if not given."""

    @property
    def accumulated(self) -> Floats:
        """Passes before the step, of every entry."""
        return np.zeros_like(self.step_s) if self.passes is None else self.passes

    def merged(self) -> "Measurements":
        """One entry per configuration: the mean. The model sees no more than these."""
        keys = np.stack([self.nodes, self.gpus, self.local_batch, self.accumulated], axis=1)
        unique, inverse = np.unique(keys, axis=0, return_inverse=True)
        means = [_known_mean(inverse.reshape(-1), t) for t in (self.step_s, self.accumulation_s)]
        nodes, gpus, local_batch, passes = unique.T
        return Measurements(nodes, gpus, local_batch, means[0], means[1], passes)


def _known_mean(groups: NDArray[np.intp], values: Floats) -> Floats:
    """Per group, of the values that are known; NaN where none is."""
    known = ~np.isnan(values)
    counts = np.bincount(groups, known)
    sums = np.bincount(groups, np.where(known, values, 0.0))
    return np.where(counts > 0, sums / np.maximum(counts, 1.0), np.nan)


def fit_throughput(measured: Measurements) -> Throughput:
    """The constants that explain the measurements best.

    What was never measured cannot be fitted: without placements across nodes (or within one)
    the two networks are taken to be the same.
    """
    points = measured.merged()
    best_loss, best = np.inf, _LOW
    for start in _starts(points):
        log_params, loss = _descend(points, start)
        if loss < best_loss * (1 - 1e-6):  # a tie goes to the earlier start
            best_loss, best = loss, log_params
    return _borrowed(points, np.exp(_polished(points, best)))


def relative_errors(model: Throughput, measured: Measurements) -> Floats:
    """|predicted / measured − 1| of every step time."""
    at = measured.nodes, measured.gpus, measured.local_batch, measured.accumulated
    predicted = iteration_time(model, *at)
    return np.abs(predicted / measured.step_s - 1)


def _descend(points: Measurements, start: Floats) -> tuple[Floats, float]:
    """Levenberg-Marquardt within the box from one start: (log-parameters, loss)."""
    x, damping = np.clip(start, _LOW, _HIGH), 1e-3
    residuals, jacobian = _residuals(x, points)
    loss = _loss(residuals)
    for _ in range(MAX_ITERATIONS):
        weights = _weights(residuals)
        gradient = jacobian.T @ (weights * residuals)
        curvature = (jacobian * weights[:, None]).T @ jacobian
        free = _free(x, gradient)
        step = _damped_step(curvature, gradient, free, damping)
        candidate = np.clip(np.subtract(x, step), _LOW, _HIGH)
        new_residuals, new_jacobian = _residuals(candidate, points)
        new_loss = _loss(new_residuals)
        if new_loss < loss:
            gained = loss - new_loss
            x, loss, residuals, jacobian = candidate, new_loss, new_residuals, new_jacobian
            damping = max(damping / 5, 1e-12)
            if gained <= 1e-14 * loss:
                break
        else:
            damping *= 4
            if damping > 1e8:
                break
    return x, loss


def _polished(points: Measurements, x: Floats) -> Floats:
    """A few Newton steps at the end.

    Descent stops where the loss is flat to rounding, which leaves parameters that good only to
    its square root. Newton on the gradient makes them the same on every machine.
    """
    gradient = _gradient(x, points)
    inside = np.flatnonzero(_free(x, gradient) & (x > _LOW) & (x < _HIGH))
    for _ in range(POLISHING_STEPS if len(inside) else 0):
        shifts = np.eye(len(x))[inside] * 1e-5
        columns = [_gradient(x + d, points) - _gradient(x - d, points) for d in shifts]
        hessian = np.array(columns)[:, inside] / 2e-5
        step = np.zeros(len(x))
        step[inside] = np.linalg.lstsq(hessian, gradient[inside], rcond=1e-9)[0]
        candidate = np.clip(np.subtract(x, step), _LOW, _HIGH)
        new_gradient = _gradient(candidate, points)
        if np.abs(new_gradient[inside]).max() >= np.abs(gradient[inside]).max():
            break
        x, gradient = candidate, new_gradient
    return x


def _gradient(x: Floats, points: Measurements) -> Floats:
    residuals, jacobian = _residuals(x, points)
    return np.asarray(jacobian.T @ (_weights(residuals) * residuals))


def _weights(residuals: Floats) -> Floats:
    return np.asarray(1.0 / np.sqrt(1.0 + (residuals / SOFT) ** 2))


def _free(x: Floats, gradient: Floats) -> NDArray[np.bool_]:
    """Parameters that are not held on a bound."""
    return ~((x <= _LOW) & (gradient > 0)) & ~((x >= _HIGH) & (gradient < 0))


def _damped_step(
    curvature: Floats, gradient: Floats, free: NDArray[np.bool_], damping: float
) -> Floats:
    """Marquardt's step in the free parameters; the others stay on their bound."""
    step = np.zeros(len(gradient))
    inside = np.flatnonzero(free)
    if len(inside):
        system = curvature[np.ix_(inside, inside)]
        scale = np.diag(np.diag(system) * damping + 1e-12)
        step[inside] = np.clip(np.linalg.solve(system + scale, gradient[inside]), -2.0, 2.0)
    return step


def _loss(residuals: Floats) -> float:
    """Soft-L1: r²/2 for small residuals, SOFT · |r| for large ones."""
    return float(np.sum(SOFT**2 * (np.sqrt(1.0 + (residuals / SOFT) ** 2) - 1.0)))


def _residuals(x: Floats, points: Measurements) -> tuple[Floats, Floats]:
    """Log errors of step and accumulation times, and their derivatives by the log-parameters.

    With q the smaller of compute and network time over the larger, the step's logarithm is
    log(larger) + log(1 + q^γ)/γ. That of an iteration is the step's less that of the step's part
    in it. An accumulation time that is not known is no evidence.
    """
    model = Throughput.of(np.exp(x))
    compute = accumulation_time(model, points.local_batch)
    network = network_time(model, points.nodes, points.gpus)
    larger = np.maximum(compute, network)
    log_q = np.log(np.maximum(np.minimum(compute, network) / larger, 1e-300))
    q_power = np.exp(model.gamma * log_q)
    share_of_smaller = q_power / (1.0 + q_power)
    share = np.where(compute >= network, 1.0 - share_of_smaller, share_of_smaller)
    extra = np.log1p(q_power) / model.gamma
    step = larger * np.exp(extra)
    part = step / (points.accumulated * compute + step)
    known = ~np.isnan(points.accumulation_s)

    by_compute = np.stack([np.full_like(compute, model.alpha_c), model.beta_c * points.local_batch])
    by_compute /= compute
    by_gamma = share_of_smaller * log_q - extra
    by_network = _by_network(model, network, points) * (1 - share)
    of_pass = np.vstack([by_compute, np.zeros((5, len(compute)))])
    of_step = np.vstack([by_compute * share, by_network, by_gamma]) * part + of_pass * (1 - part)
    residuals = np.concatenate(
        [
            np.log(larger) + extra - np.log(part) - np.log(points.step_s),
            (np.log(compute) - np.log(points.accumulation_s))[known],
        ]
    )
    return residuals, np.hstack([of_step, of_pass[:, known]]).T


def _by_network(model: Throughput, network: Floats, points: Measurements) -> Floats:
    """d log T_net by the logarithms of α_n, β_n, α_r, β_r."""
    across, within = points.nodes > 1, (points.nodes <= 1) & (points.gpus > 1)
    beyond_two = np.maximum(points.gpus - 2, 0)
    parts = [
        across * model.alpha_n,
        across * model.beta_n * beyond_two,
        within * model.alpha_r,
        within * model.beta_r * beyond_two,
    ]
    return np.stack(parts) / np.where(network > 0, network, 1.0)


def _starts(points: Measurements) -> list[Floats]:
    """A handful of first guesses: a line through the accumulation times, a few networks."""
    accumulation_s = _guessed(points)
    typical, mean_batch = float(np.median(accumulation_s)), float(points.local_batch.mean())
    off_mean = points.local_batch - mean_batch
    slope = float(off_mean @ accumulation_s) / max(float(off_mean @ off_mean), 1e-12)
    offset = float(accumulation_s.mean()) - slope * mean_batch
    alpha_c = max(offset, 0.05 * typical)
    beta_c = max(slope, 0.05 * typical / mean_batch)
    passes = (points.accumulated + 1) * accumulation_s
    synchronising = np.maximum(points.step_s - passes, 1e-3 * points.step_s)
    across, within = points.nodes > 1, (points.nodes <= 1) & (points.gpus > 1)
    net_n = float(np.median(synchronising[across])) if across.any() else 0.1 * typical
    net_r = float(np.median(synchronising[within])) if within.any() else 0.1 * typical
    shapes = product((1.1, 2.0, 4.0), ((1.0, 0.02), (0.3, 0.1)))
    return [
        np.log([alpha_c, beta_c, *(t * part for t in (net_n, net_r) for part in parts), gamma])
        for gamma, parts in shapes
    ]


def _guessed(points: Measurements) -> Floats:
    """Accumulation times; one that is not known as nine tenths of what its iteration allows."""
    most = 0.9 * points.step_s / (points.accumulated + 1)
    return np.where(np.isnan(points.accumulation_s), most, points.accumulation_s)


def _borrowed(points: Measurements, params: Floats) -> Throughput:
    """Give a network that was never measured the constants of the one that was."""
    if not np.any(points.nodes > 1):
        params[2:4] = params[4:6]
    elif not np.any((points.nodes <= 1) & (points.gpus > 1)):
        params[4:6] = params[2:4]
    return Throughput.of(params)
