"""How noisy the gradient is: measured while training, for almost nothing.

Of a gradient g over B samples, E|g|² = |G|² + tr Σ / B: the true gradient G, and the covariance Σ
of one sample's gradient. Readings of different noise tell the two apart.

Exact, where a batch is taken in several parts at the same weights: by the ranks under DDP, or by
the passes of one rank. With n_i samples in part i, T in all and m parts that have any, tr Σ is the
mean square between the parts, (Σ n_i |g_i|² − T |g|²) / (m − 1), and |G|² = |g|² − tr Σ / T. Both
are unbiased whatever the shares.

Rough, elsewhere (one rank and one pass, or sharded parameters): from two consecutive gradients,
tr Σ = |g − g'|² / (1/T + 1/T') and |G|² = g · g'. The optimiser's step between them biases both.
With plain SGD at rate η and Hessian H, |G|² comes out too low by η E[g · H g], which may be all of
it once a training wanders about a minimum; tr Σ too high by a factor of about 1 + η tr(HΣ) / tr Σ,
which is little. So the noise scale comes out too large.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel

from boa.train.torch.arriving import Arriving
from boa.train.torch.averaging import Reduced, average, averaged, reduced_by
from boa.train.torch.norms import Tensors, held, joint, local, norm
from boa.train.torch.ranks import Ranks

EVERY = 50
"""Steps from one measurement to the next,"""
EVERY_EARLY, EARLY = 10, 20
"""and between the first ones, so that something is known soon."""
MEMORY = 1000
"""Steps after which a measurement counts 1/e."""
LEAST = 5
"""Fewer measurements say nothing."""

Hook: TypeAlias = Callable[[dist.ProcessGroup, GradBucket], Reduced]
Scale: TypeAlias = float | torch.Tensor | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Gradient statistics at the base batch size B0; gain(B) = (var + sqr) / (var · B0/B + sqr)."""

    grad_sqr: float
    """|G|², the squared norm of the true gradient."""
    grad_var: float
    """tr Σ / B0, the variance of the gradient of a batch of B0 samples."""
    base_batch: int

    @property
    def noise_scale(self) -> float:
        """tr Σ / |G|² in samples: the batch size at which noise and signal are equally large."""
        noise = self.base_batch * self.grad_var
        return noise / self.grad_sqr if self.grad_sqr > 0 else (math.inf if noise > 0 else 0.0)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A measurement under way, of the same steps on every rank."""

    step: int
    totals: tuple[int, ...]
    """Samples of the batch, or of both batches where two gradients are compared."""


@dataclass(frozen=True, slots=True)
class _Share:
    """A rank's addition to a reading, once its norms have arrived."""

    norms: Arriving
    parts: list[float]
    """Weights of the squares of the first norms in the sum over parts;"""
    whole: list[float]
    """and those of the others in the sum for the whole."""
    taking: int
    """Parts that have any samples."""


class NoiseMeter:
    """Measures one step in `every`, or two consecutive ones.

    A reading is over when the shares of all ranks have come; the next does not begin before. All
    ranks hear of that by the same `push`, so they always measure the same steps.
    """

    LENGTH = 4
    """Ranks that answered, sum over parts, sum for the whole, parts that had samples."""

    def __init__(
        self,
        ranks: Ranks,
        parameters: Iterable[torch.Tensor],
        *,
        base_batch: int,
        every: int = EVERY,
    ) -> None:
        self._ranks, self._base_batch, self._every = ranks, base_batch, every
        self._parameters = [p for p in parameters if p.requires_grad]
        self._exact, self._rough = _Average(), _Average()
        self._wait = 0  # steps to leave out before the next reading
        self._hooked = False
        self._watched: DistributedDataParallel | None = None
        self._buckets: dict[int, torch.Tensor] = {}
        self._part: tuple[int, Tensors] | None = None
        self._before: tuple[_Reading, Tensors, torch.Tensor] | None = None
        self._reading: _Reading | None = None
        self._share: _Share | None = None
        self._sums = [0.0] * self.LENGTH

    def watch(self, model: DistributedDataParallel) -> None:
        """See each rank's own gradient before it is averaged; steps that are not measured are DDP's
        alone.

        Where `aside` says so, the last pass has to run without synchronisation, like those before
        it. `measure` then averages the gradients. A model with sparse gradients needs `attach`.
        """
        self._watched, self._reduced = model, reduced_by(model)

    def attach(self, model: DistributedDataParallel, hook: Hook = averaged) -> None:
        """The same by a hook that is called in every step, so that sums always have DDP's order.

        `hook` is what averages gradients, should that not be left to DDP. It costs up to a tenth
        of a step that takes 10 ms.
        """

        def watched(group: dist.ProcessGroup, bucket: GradBucket) -> Reduced:
            if self.due and not bucket.buffer().is_sparse:
                self._buckets[bucket.index()] = norm([bucket.buffer()])
            return hook(group, bucket)

        model.register_comm_hook(model.process_group, watched)
        self._hooked = True

    def accumulated(self, local: int) -> None:
        """After a backward that is not the last of its iteration; `local` samples so far.

        On one rank that is what makes an exact reading possible.
        """
        if not (self.due and self._ranks.alone and self._part is None and local):
            return
        if gradients := self._gradients()[0]:
            self._part = local, torch._foreach_mul(gradients, 1.0)

    def measure(self, local: int, total: int, step: int, *, scale: Scale = None) -> None:
        """After the last backward of an iteration, before gradients are unscaled or clipped.

        `local` samples of this rank, `total` of all. Every pass's loss is the mean over its samples
        times their number · world / total, so that the average over ranks of the sum over passes is
        the mean over all. `scale`: what the loss was multiplied by on top; a tensor on the device
        is not waited for.
        """
        if isinstance(scale, float) and scale == 1.0:
            scale = None
        due, own = self.due, self._own()
        self._wait = max(self._wait - 1, 0)
        if self._before is not None:
            self._second(total, scale)
        elif due and (own is not None or self._watched is None):
            exact = own is not None or self._part is not None
            early = (self._exact if exact else self._rough).count < EARLY
            self._wait = min(self._every, EVERY_EARLY if early else self._every) - 1
            if own is not None:
                self._between_ranks(own, local, total, step, scale)
            elif self._part is not None and self._part[0] < local:
                self._between_passes(total, step, scale)
            else:
                self._first(total, step, scale)
        self._part = None
        self._buckets.clear()

    def pop(self) -> list[float]:
        """This rank's addition to the sum over ranks; zeros unless something has arrived."""
        if self._share is None or (norms := self._share.norms.values()) is None:
            return [0.0] * self.LENGTH
        share, self._share = self._share, None
        squares = [value * value for value in norms]
        parts = sum(a * b for a, b in zip(share.parts, squares, strict=False))
        whole = sum(a * b for a, b in zip(share.whole, squares[len(share.parts) :], strict=True))
        return [1.0, parts, whole, float(share.taking)]

    def push(self, summed: Sequence[float]) -> None:
        """The sums over ranks of what all of them have popped."""
        if self._reading is None or not summed[0]:
            return
        self._sums = [a + b for a, b in zip(self._sums, summed, strict=True)]
        if self._sums[0] < self._ranks.world_size:
            return  # the shares of others are still on their way
        reading, (_, parts, whole, taking) = self._reading, self._sums
        self._reading, self._sums = None, [0.0] * self.LENGTH
        if not math.isfinite(parts + whole):
            return
        if len(reading.totals) == 2:
            self._rough.add(reading.step, *_of_steps(parts, whole, *reading.totals))
        elif taking >= 2:
            self._exact.add(reading.step, *_of_parts(parts, whole, taking, reading.totals[0]))

    @property
    def due(self) -> bool:
        """Whether a reading begins with the iteration that `measure` will end."""
        return not self._wait and self._reading is None and self._before is None

    @property
    def aside(self) -> bool:
        """Whether DDP must not synchronise that iteration. The same on all ranks."""
        return self._watched is not None and self.due

    @property
    def averages(self) -> bool:
        """Whether `measure` averages gradients that DDP was told to leave alone."""
        return self._watched is not None

    def drop(self, step: int) -> None:
        """Forget what was read in this step, on all ranks alike: there was more to its gradient."""
        if self._reading is not None and self._reading.step == step:
            self._reading = self._share = None
        if self._before is not None and self._before[0].step == step:
            self._before = None
        self._part = None

    @property
    def statistics(self) -> Statistics | None:
        """None until something is known. From exact readings, unless the last is long ago."""
        exact, rough = self._exact, self._rough
        stale = exact.count < LEAST or exact.step < rough.step - MEMORY
        best = rough if stale and rough.count >= LEAST else exact
        if best.count < LEAST:
            return None
        sqr, noise = best.means()
        return Statistics(max(sqr, 0.0), max(noise, 0.0) / self._base_batch, self._base_batch)

    def state_dict(self) -> dict[str, dict[str, float]]:
        """Plain numbers, which mean the same at any width and base batch size."""
        return {"exact": self._exact.state_dict(), "rough": self._rough.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._exact.load_state_dict(state["exact"])
        self._rough.load_state_dict(state["rough"])

    # What is read off the device. All ranks have to send something, or none would measure again.

    def _own(self) -> torch.Tensor | None:
        """The norm of this rank's gradient before it was averaged, if that is due and was seen.

        A gradient that DDP has left alone is averaged here.
        """
        own = None
        if self._hooked and self.due:
            found = list(self._buckets.values())
            own = joint(found) if found else self._number(math.nan)
        elif self._watched is not None and not self._watched.require_backward_grad_sync:
            if self.due:
                own = self._norm(*self._gradients())
            average(self._watched, self._reduced)
        return own

    def _between_ranks(
        self, own: torch.Tensor, local: int, total: int, step: int, scale: Scale
    ) -> None:
        """The gradient of this rank's share against that of all, which rank 0 reads."""
        norms = [own]
        undone = total / (self._ranks.world_size * local) if local else 0.0
        whole = []
        if self._ranks.rank == 0:
            norms.append(self._norm(*self._gradients()))
            whole.append(float(total))
        self._send(_Reading(step, (total,)), norms, [local * undone**2], whole, scale)

    def _between_passes(self, total: int, step: int, scale: Scale) -> None:
        """The gradient of the first pass, and of the others, against that of all."""
        assert self._part is not None
        (first, part), (gradients, _) = self._part, self._gradients()
        if _shapes(gradients) != _shapes(part):
            return self._first(total, step, scale)  # not all parameters take part in every pass
        norms = [self._norm(part)]
        torch._foreach_sub_(part, gradients)
        norms += [self._norm(part), self._norm(gradients)]
        parts = [total**2 / first, total**2 / (total - first)]
        return self._send(_Reading(step, (total,)), norms, parts, [float(total)], scale)

    def _first(self, total: int, step: int, scale: Scale) -> None:
        """Keep a copy of the gradient for the next step."""
        gradients, weights = self._gradients()
        kept: Tensors = []
        if gradients:
            kept = torch._foreach_div(gradients, 1.0 if scale is None else scale)
        self._before = _Reading(step, (total,)), kept, self._norm(kept, weights)

    def _second(self, total: int, scale: Scale) -> None:
        """Compare the gradient with the one before."""
        assert self._before is not None
        (reading, kept, norm_before), self._before = self._before, None
        gradients, weights = self._gradients()
        if _shapes(gradients) != _shapes(kept):
            norm_before, kept, gradients = self._number(math.nan), [], []
        if scale is not None:
            norm_before = norm_before * scale
        if kept:
            if scale is not None:
                torch._foreach_mul_(kept, scale)
            torch._foreach_sub_(kept, gradients)
        norms = [self._norm(kept, weights), norm_before, self._norm(gradients, weights)]
        both = _Reading(reading.step, (*reading.totals, total))
        self._send(both, norms, [1.0], [1.0, 1.0], scale)

    def _send(
        self,
        reading: _Reading,
        norms: list[torch.Tensor],
        parts: list[float],
        whole: list[float],
        scale: Scale,
    ) -> None:
        values = torch.stack(norms)
        arriving = Arriving(values if scale is None else values / scale)
        taking = sum(part > 0 for part in parts)
        self._reading, self._share = reading, _Share(arriving, parts, whole, taking)

    def _gradients(self) -> tuple[list[torch.Tensor], list[float] | None]:
        """Gradients that this rank holds, and the part it answers for if not for all."""
        found = [p.grad for p in self._parameters if p.grad is not None and not p.grad.is_sparse]
        if self._hooked or self._watched is not None or self._ranks.alone:
            return [local(gradient) for gradient in found], None
        return held(found, self._ranks.world_size)

    def _norm(self, tensors: Tensors, weights: list[float] | None = None) -> torch.Tensor:
        return norm(tensors, weights) if tensors else self._number(0.0)

    def _number(self, value: float) -> torch.Tensor:
        return torch.full((), value, device=self._ranks.device)


class _Average:
    """Averages of both quantities apart, since a mean of ratios is noisier and off.

    Weights are kept beside the sums, so that the first readings count in full.
    """

    def __init__(self) -> None:
        self.count, self.step = 0, 0
        self._sqr = self._noise = self._weight = 0.0

    def add(self, step: int, sqr: float, noise: float) -> None:
        fading = math.exp(-max(step - self.step, 0) / MEMORY)
        self._sqr = self._sqr * fading + sqr
        self._noise = self._noise * fading + noise
        self._weight = self._weight * fading + 1.0
        self.step, self.count = step, self.count + 1

    def means(self) -> tuple[float, float]:
        """(|G|², tr Σ)."""
        return self._sqr / self._weight, self._noise / self._weight

    def state_dict(self) -> dict[str, float]:
        sums = {"sqr": self._sqr, "noise": self._noise, "weight": self._weight}
        return {"count": self.count, "step": self.step, **sums}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.count, self.step = int(state["count"]), int(state["step"])
        self._sqr, self._noise, self._weight = state["sqr"], state["noise"], state["weight"]


def _of_parts(parts: float, whole: float, taking: float, total: int) -> tuple[float, float]:
    """(|G|², tr Σ) from Σ n_i |g_i|² and T |g|²."""
    noise = (parts - whole) / (taking - 1)
    return (whole - noise) / total, noise


def _of_steps(difference: float, both: float, first: int, second: int) -> tuple[float, float]:
    """(|G|², tr Σ) from |g − g'|² and |g|² + |g'|²."""
    return (both - difference) / 2, difference / (1 / first + 1 / second)


def _shapes(tensors: Tensors) -> list[torch.Size]:
    return [tensor.shape for tensor in tensors]
