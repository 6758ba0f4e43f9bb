"""Beliefs about rates at widths that were never run: what to expect there, and how sure that is.

A class's rate at width k is its prediction times the exponential of a correction. Corrections of
neighbouring widths are alike: over the logarithm of the width they wander as a Brownian path does,
by `STEP` over an octave. Where a width was run the path is pinned down; between two such widths its
mean is the straight line and its variance the bridge's; beyond them it spreads. Leaving the node
adds as much as `NODE` octaves: that is where curves bend.

An estimate is planned with at the mean of its time, E[1/rate], so that what was never run has to
promise more than what was (`expected`); what a trial could show is `HOPE` deviations better
(`hoped`). Nobody who plans with the mean of his beliefs is cursed by choosing the best of many.

`STEP`, `NODE` and the share of work that does not scale are measured: five models on T4, V100 and
A100 (`docs/decisions/0022-plans-from-uncertain-knowledge.md`).
"""

from dataclasses import dataclass

import numpy as np

from boa.model.speedup import Floats

STEP = 0.2
"""Standard deviation of a logarithmic correction over an octave of widths."""
NODE = 0.5
"""Octaves that crossing from one node to several counts as."""
SERIAL = 0.08
"""Share of the work that more GPUs do not speed up, of a class that nothing is known of."""
SLOPE = 0.15
"""Standard deviation, per octave, of how much better or worse than that a class scales."""
HOPE = 2.0
"""Standard deviations by which a trial may turn out better than expected."""
_ANY = 10.0
"""Standard deviation of a logarithm of which nothing is known."""
_EXACT = 1e-4
"""That of one which was measured."""


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """Logarithms of rates: what they are thought to be, and how far that may be off."""

    mean: Floats
    sd: Floats

    @property
    def expected(self) -> Floats:
        """1 / E[1/rate], as a logarithm: with it, mean times come out right."""
        return np.asarray(self.mean - self.sd**2 / 2)

    @property
    def hoped(self) -> Floats:
        return np.asarray(self.mean + HOPE * self.sd)


def places(widths: Floats, gpus_per_node: int) -> Floats:
    """Octaves from one GPU, with the step across nodes."""
    return np.asarray(np.log2(np.maximum(widths, 1.0)) + NODE * (widths > gpus_per_node))


def amdahl(widths: Floats, serial: float = SERIAL) -> Floats:
    """Logarithm of the speedup of a class of which only this share does not scale."""
    return np.asarray(np.log(widths) - np.log1p(serial * (widths - 1.0)))


def bridged(known: Floats, at: Floats) -> Floats:
    """Variance, in octaves, of a Brownian path that is known at these places (rising)."""
    right = np.searchsorted(known, at)
    low = known[np.maximum(right - 1, 0)]
    high = known[np.minimum(right, len(known) - 1)]
    span = high - low
    inside = (at - low) * (high - at) / np.where(span > 0, span, 1.0)
    return np.where(span > 0, inside, np.abs(at - low))


def believed(
    at: Floats, prior: Floats, seen: Floats, places_seen: Floats, errors: Floats
) -> Belief:
    """Logarithms of rates at places, after some were seen with errors of these deviations.

    `prior`: what is thought of every place but for a level that nobody knows and a slope that is
    `SLOPE` off; `seen`: logarithms minus the prior at the places seen. Gaussian regression.
    """
    if not len(seen):
        return Belief(prior, np.full(len(at), _ANY))
    noise = np.maximum(errors, _EXACT) ** 2
    inner = _alike(places_seen, places_seen) + np.diag(noise)
    outer = _alike(at, places_seen)
    weights = np.linalg.solve(inner, outer.T).T
    variance = _alike(at, at).diagonal() - (weights * outer).sum(axis=1)
    sd = np.sqrt(np.maximum(variance, 0.0))
    level = seen.mean()  # so that it does not matter in which unit rates are told
    mean = prior + level + weights @ (seen - level)
    return Belief(np.asarray(mean), np.where(sd < 2 * _EXACT, 0.0, sd))


def _alike(one: Floats, other: Floats) -> Floats:
    """Covariance of corrections: a common level, a common slope, a Brownian path."""
    path = np.minimum(one[:, None], other[None, :])
    return np.asarray(_ANY**2 + SLOPE**2 * np.outer(one, other) + STEP**2 * path)
