"""Fitting the throughput model to measured step times: robust, bounded, the same every time.

Step and accumulation times are compared on a log scale (a relative error counts the same for a
fast and a slow configuration) under a soft-L1 loss (a stray measurement pulls with bounded
force). Seven log-parameters, Levenberg-Marquardt with box bounds, several starts.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from boa.goodput.throughput import Throughput, accumulation_time, step_time
from boa.model.speedup import Floats

SOFT = 0.05
"""Log errors well under this count squared, well over it absolutely."""
LEAST_TIME = 1e-8
MOST_TIME = 1e4
MOST_GAMMA = 10.0
MAX_ITERATIONS = 300

_LOW = np.log([LEAST_TIME] * 6 + [1.0])
_HIGH = np.log([MOST_TIME] * 6 + [MOST_GAMMA])


@dataclass(frozen=True, slots=True)
class Measurements:
    """Measured configurations of one model on one GPU type, one entry each."""

    nodes: Floats
    gpus: Floats
    local_batch: Floats
    step_s: Floats
    accumulation_s: Floats
    """Step time less synchronisation: what one accumulation pass takes."""

    def merged(self) -> "Measurements":
        """One entry per (nodes, GPUs, local batch): the mean. The model sees no more than these."""
        keys = np.stack([self.nodes, self.gpus, self.local_batch], axis=1)
        unique, inverse, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        inverse = inverse.reshape(-1)
        means = [np.bincount(inverse, t) / counts for t in (self.step_s, self.accumulation_s)]
        return Measurements(unique[:, 0], unique[:, 1], unique[:, 2], means[0], means[1])


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
    return _borrowed(points, np.exp(best))


def relative_errors(model: Throughput, measured: Measurements) -> Floats:
    """|predicted / measured − 1| of every step time."""
    predicted = step_time(model, measured.nodes, measured.gpus, measured.local_batch)
    return np.abs(predicted / measured.step_s - 1)


def _descend(points: Measurements, start: Floats) -> tuple[Floats, float]:
    """Levenberg-Marquardt within the box from one start: (log-parameters, loss)."""
    x, damping = np.clip(start, _LOW, _HIGH), 1e-3
    residuals, jacobian = _residuals(x, points)
    loss = _loss(residuals)
    for _ in range(MAX_ITERATIONS):
        weights = 1.0 / np.sqrt(1.0 + (residuals / SOFT) ** 2)
        gradient = jacobian.T @ (weights * residuals)
        curvature = (jacobian * weights[:, None]).T @ jacobian
        free = ~((x <= _LOW) & (gradient > 0)) & ~((x >= _HIGH) & (gradient < 0))
        candidate = x - _damped_step(curvature, gradient, free, damping)
        candidate = np.clip(candidate, _LOW, _HIGH)
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


def _damped_step(curvature: Floats, gradient: Floats, free: Floats, damping: float) -> Floats:
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
    """Log errors of step and accumulation times, and their derivatives by the log-parameters."""
    model = Throughput.of(np.exp(x))
    compute = accumulation_time(model, points.local_batch)
    beyond_two = np.maximum(points.gpus - 2, 0)
    across, within = points.nodes > 1, (points.nodes <= 1) & (points.gpus > 1)
    alpha = np.where(across, model.alpha_n, model.alpha_r)
    network = np.where(across | within, alpha, 0.0)
    beta = np.where(across, model.beta_n, model.beta_r) * beyond_two
    network = network + np.where(across | within, beta, 0.0)
    larger = np.maximum(compute, network)
    log_ratio = np.log(np.maximum(np.minimum(compute, network) / larger, 1e-300))
    small = np.exp(model.gamma * log_ratio)
    share_small = small / (1.0 + small)
    share_compute = np.where(compute >= network, 1.0 - share_small, share_small)
    log_sum = np.log1p(small)

    by_compute = np.stack([model.alpha_c / compute, model.beta_c * points.local_batch / compute])
    safe = np.where(network > 0, network, 1.0)
    by_alpha, by_beta = alpha * (network > 0) / safe, beta * (network > 0) / safe
    by_network = np.stack(
        [by_alpha * across, by_beta * across, by_alpha * within, by_beta * within]
    )
    by_gamma = share_small * log_ratio - log_sum / model.gamma
    steps = np.vstack([by_compute * share_compute, by_network * (1 - share_compute), by_gamma])
    passes = np.vstack([by_compute, np.zeros((5, len(compute)))])
    residuals = np.concatenate(
        [
            np.log(larger) + log_sum / model.gamma - np.log(points.step_s),
            np.log(compute) - np.log(points.accumulation_s),
        ]
    )
    return residuals, np.hstack([steps, passes]).T


def _starts(points: Measurements) -> list[Floats]:
    """A handful of first guesses: a line through the accumulation times, a few networks."""
    slope, offset = np.polyfit(points.local_batch, points.accumulation_s, 1)
    typical = float(np.median(points.accumulation_s))
    mean_batch = float(points.local_batch.mean())
    alpha_c = max(offset, 0.05 * typical)
    beta_c = max(slope, 0.05 * typical / mean_batch)
    synchronising = np.maximum(points.step_s - points.accumulation_s, 1e-3 * points.step_s)
    across, within = points.nodes > 1, (points.nodes <= 1) & (points.gpus > 1)
    network_n = float(np.median(synchronising[across])) if across.any() else 0.1 * typical
    network_r = float(np.median(synchronising[within])) if within.any() else 0.1 * typical
    return [
        np.log(
            [
                alpha_c,
                beta_c,
                network_n * size,
                network_n * growth,
                network_r * size,
                network_r * growth,
                gamma,
            ]
        )
        for gamma, (size, growth) in product((1.1, 2.0, 4.0), ((1.0, 0.02), (0.3, 0.1)))
    ]


def _borrowed(points: Measurements, params: Floats) -> Throughput:
    """Give a network that was never measured the constants of the one that was."""
    if not np.any(points.nodes > 1):
        params[2:4] = params[4:6]
    elif not np.any((points.nodes <= 1) & (points.gpus > 1)):
        params[4:6] = params[2:4]
    return Throughput.of(params)
