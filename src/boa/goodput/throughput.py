"""How long an iteration takes: the seven-parameter model of Pollux, as pure functions of arrays.

T_acc  = α_c + β_c · b                          one pass over b samples per GPU
T_net  = α_n + β_n · (K − 2)   across nodes     synchronising K GPUs
         α_r + β_r · (K − 2)   within one node
         0                     on one GPU
T_step = (T_acc^γ + T_net^γ)^(1/γ)              γ = 1: no overlap; γ → ∞: perfect overlap
T_iter = a · T_acc + T_step                     with a accumulation passes before it
"""

from collections.abc import Iterable
from dataclasses import astuple, dataclass

import numpy as np

from boa.model.speedup import Floats
from boa.units import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The fitted constants of one model on one GPU type; times in seconds."""

    alpha_c: float
    beta_c: float
    alpha_n: float
    beta_n: float
    alpha_r: float
    beta_r: float
    gamma: float

    @classmethod
    def of(cls, constants: Iterable[float]) -> "Throughput":
        """From the seven constants in the order of the fields."""
        alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma = map(float, constants)
        return cls(
            alpha_c=alpha_c,
            beta_c=beta_c,
            alpha_n=alpha_n,
            beta_n=beta_n,
            alpha_r=alpha_r,
            beta_r=beta_r,
            gamma=gamma,
        )

    def astuple(self) -> tuple[float, ...]:
        return astuple(self)


def accumulation_time(model: Throughput, local_batch: Floats) -> Floats:
    """T_acc: forward and backward over the local batch, without synchronising."""
    return np.asarray(model.alpha_c + model.beta_c * local_batch)


def network_time(model: Throughput, nodes: Floats, gpus: Floats) -> Floats:
    """T_net: one gradient synchronisation."""
    beyond_two = np.maximum(gpus - 2, 0)
    across = model.alpha_n + model.beta_n * beyond_two
    within = model.alpha_r + model.beta_r * beyond_two
    return np.where(gpus > 1, np.where(nodes > 1, across, within), 0.0)


def overlapped(compute: Floats, network: Floats, gamma: float) -> Floats:
    """(x^γ + y^γ)^(1/γ), by the larger of the two so that no power over- or underflows."""
    larger = np.maximum(compute, network)
    ratio = np.minimum(compute, network) / larger
    return np.asarray(larger * (1.0 + ratio**gamma) ** (1.0 / gamma))


def step_time(model: Throughput, nodes: Floats, gpus: Floats, local_batch: Floats) -> Floats:
    """T_step: the pass that ends in a synchronisation."""
    compute = accumulation_time(model, local_batch)
    return overlapped(compute, network_time(model, nodes, gpus), model.gamma)


def times_on(
    model: Throughput, nodes: int, gpus: int, local_batch: float
) -> tuple[Seconds, Seconds]:
    """(T_step, T_acc) of one placement, number by number: as arrays of one they take ten times
    as long, and simulations ask for thousands."""
    compute = model.alpha_c + model.beta_c * local_batch
    if gpus <= 1:
        return compute, compute
    alpha, beta = (model.alpha_n, model.beta_n) if nodes > 1 else (model.alpha_r, model.beta_r)
    network = alpha + beta * (gpus - 2)
    larger = max(compute, network)
    ratio = min(compute, network) / larger
    return larger * (1.0 + ratio**model.gamma) ** (1.0 / model.gamma), compute


def iteration_time(
    model: Throughput, nodes: Floats, gpus: Floats, local_batch: Floats, passes: Floats
) -> Floats:
    """T_iter: `passes` accumulation passes, then one step."""
    compute = accumulation_time(model, local_batch)
    return np.asarray(passes * compute + step_time(model, nodes, gpus, local_batch))
