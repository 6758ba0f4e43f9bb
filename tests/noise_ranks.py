"""Gradient noise measured by real ranks on problems whose noise is known.

One launch of four processes serves all cases: groups of two and three are parts of it.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from boa.train.torch.noise import NoiseMeter, _Average
from boa.train.torch.ranks import Ranks

WORLD = 4
CPU = torch.device("cpu")
Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Case:
    """What one iteration is: samples of every pass (columns) of every rank (rows)."""

    problem: str
    shares: tuple[tuple[int, ...], ...]
    steps: int
    lr: float = 0.0
    sharded: bool = False
    hooked: bool = False

    @property
    def name(self) -> str:
        shares = " ".join("+".join(map(str, row)) for row in self.shares)
        kind = "sharded " if self.sharded else "hooked " if self.hooked else ""
        return f"{self.problem} {kind}{shares}" + (f" lr {self.lr}" if self.lr else "")


class Regression:
    """y = x · θ + ε with x ~ N(0, I) and ε ~ N(0, σ²): the noise is known in closed form.

    With δ what the weights are off by, G = δ and tr Σ = (d + 1) |δ|² + d σ².
    """

    features, spread = 32, 1.0

    def __init__(self) -> None:
        self.truth = torch.full((self.features, 1), 1 / math.sqrt(self.features))

    def model(self) -> nn.Module:
        model = nn.Linear(self.features, 1, bias=False)
        nn.init.zeros_(model.weight)
        return model

    def batch(self, samples: int, generator: torch.Generator) -> Batch:
        x = torch.randn(samples, self.features, generator=generator)
        return x, x @ self.truth + self.spread * torch.randn(samples, 1, generator=generator)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return ((outputs - targets) ** 2).mean() / 2

    def direct(self, model: nn.Module) -> tuple[float, float]:
        off = sum(float((p.detach() - self.truth.T).square().sum()) for p in model.parameters())
        return off, (self.features + 1) * off + self.features * self.spread**2


class Classifier:
    """A small network and 4,096 points with partly random labels; batches are drawn from these."""

    points = 4096

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(self.points, 12, generator=generator)
        labels = (self.inputs @ torch.randn(12, 4, generator=generator)).argmax(dim=1)
        wrong = torch.rand(self.points, generator=generator) < 0.3
        self.labels = torch.where(
            wrong, torch.randint(4, (self.points,), generator=generator), labels
        )

    def model(self) -> nn.Module:
        torch.manual_seed(2)
        return nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 4))

    def batch(self, samples: int, generator: torch.Generator) -> Batch:
        rows = torch.randint(self.points, (samples,), generator=generator)
        return self.inputs[rows], self.labels[rows]

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs, targets)

    def direct(self, model: nn.Module) -> tuple[float, float]:
        """From the gradients of all points one by one."""
        weights = {name: p.detach() for name, p in model.named_parameters()}

        def loss(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            outputs = torch.func.functional_call(model, weights, (x[None],))
            return self.loss(outputs, y[None])

        found = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(
            weights, self.inputs, self.labels
        )
        rows = torch.cat([g.flatten(1) for g in found.values()], dim=1)
        mean = rows.mean(dim=0)
        return float(mean.square().sum()), float((rows - mean).square().sum() / self.points)


PROBLEMS: dict[str, Callable[[], Any]] = {"regression": Regression, "network": Classifier}


def run_case(case: Case, rank: int, group: Any) -> dict[str, float]:
    """What the meter says at the end, and what is so, averaged over where the training was."""
    problem, world = PROBLEMS[case.problem](), len(case.shares)
    plain, total = problem.model(), sum(map(sum, case.shares))
    model = wrapped(plain, case, group)
    meter = NoiseMeter(
        Ranks(rank, world, rank, 1, CPU), model.parameters(), base_batch=total, every=1
    )
    if isinstance(model, DistributedDataParallel):
        (meter.attach if case.hooked else meter.watch)(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=case.lr)
    generator = torch.Generator().manual_seed(100 + rank)
    direct = _Average()
    for step in range(case.steps):
        if not step or (case.lr and step % 5 == 0):
            direct.add(step, *problem.direct(problem.model() if case.sharded else plain))
        backward(model, meter, problem, case.shares[rank], total, world, generator)
        meter.measure(sum(case.shares[rank]), total, step)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        sums = torch.tensor(meter.pop(), dtype=torch.float64)
        if world > 1:
            dist.all_reduce(sums, group=group)
        meter.push(sums.tolist())
    found = meter.statistics
    assert found is not None
    sqr, noise = direct.means()
    return {
        "sqr": found.grad_sqr / sqr,
        "noise": found.grad_var * total / noise,
        "scale": found.noise_scale / (noise / sqr),
        "direct_scale": noise / sqr,
    }


def wrapped(plain: nn.Module, case: Case, group: Any) -> nn.Module:
    if case.sharded:
        from torch.distributed.fsdp import fully_shard

        fully_shard(plain, mesh=dist.init_device_mesh("cpu", (len(case.shares),)))
        return plain
    return plain if len(case.shares) == 1 else DistributedDataParallel(plain, process_group=group)


def backward(
    model: nn.Module,
    meter: NoiseMeter | None,
    problem: Any,
    passes: tuple[int, ...],
    total: int,
    world: int,
    generator: torch.Generator,
    scale: float = 1.0,
) -> None:
    """The passes of one rank; only the last is synchronised. Nothing to do still makes one."""
    for number, samples in enumerate(passes):
        inputs, targets = problem.batch(max(samples, 1), generator)
        if isinstance(model, DistributedDataParallel):
            aside = meter is not None and meter.aside
            model.require_backward_grad_sync = number == len(passes) - 1 and not aside
        loss = problem.loss(model(inputs), targets) * (samples * world / total * scale)
        loss.backward()
        if meter is not None and number < len(passes) - 1:
            meter.accumulated(sum(passes[: number + 1]))


def cases() -> Iterator[Case]:
    for problem in PROBLEMS:
        yield Case(problem, ((96,),), 100)
        yield Case(problem, ((33, 63),), 100)
        yield Case(problem, ((48,), (48,)), 100)
        yield Case(problem, ((25, 24), (24, 24)), 100)
        yield Case(problem, ((80,), (16,)), 100)
        yield Case(problem, ((25,), (24,), (24,), (24,)), 100)
        yield Case(problem, ((32, 10), (20, 21), (21, 11), (0, 0)), 100)
        yield Case(problem, ((25, 24), (24, 24)), 100, hooked=True)
        yield Case(problem, ((25,), (24,), (24,), (24,)), 100, hooked=True)
    yield Case("network", ((512,),), 200, lr=0.1)
    yield Case("network", ((256, 256),), 200, lr=0.1)
    yield Case("network", ((256,), (256,)), 200, lr=0.1)
    yield Case("network", ((24,), (24,), (24,), (24,)), 150, sharded=True)


class Uneven(nn.Module):
    """Buffers, other precisions and layouts, and parameters that not every rank has a gradient of:
    `idle` none, `rare` those for which `takes` holds."""

    def __init__(self, *, takes: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.one = nn.Linear(12, 24)
        self.norm = nn.BatchNorm1d(24)
        mix: nn.Module = nn.Conv2d(2, 4, 3, padding=1)
        self.mix = mix.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.two = nn.Linear(48, 4).double()
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.idle = nn.Parameter(torch.ones(5))
        self.rare = nn.Parameter(torch.ones(4))
        self.takes = takes

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.norm(self.one(inputs)).tanh()
        mixed = self.mix(hidden.reshape(-1, 2, 3, 4)).flatten(1)
        outputs: Tensor = self.frozen(self.two(mixed.double()).float())
        return outputs * self.rare if self.takes else outputs


def trained(group: Any, rank: int, *, way: str, uneven: bool, views: bool) -> list[Any]:
    """Gradients and buffers of a few steps under DDP, as exact numbers."""
    problem = Classifier()
    plain = Uneven(takes=rank == 1) if uneven else problem.model()
    model = DistributedDataParallel(
        plain,
        process_group=group,
        gradient_as_bucket_view=views,
        bucket_cap_mb=1,
        find_unused_parameters=uneven,
    )
    world, found = group.size(), list[Any]()
    ranks = Ranks(rank, world, rank, 1, CPU)
    meter = NoiseMeter(ranks, model.parameters(), base_batch=10 * world, every=2)
    if way != "plain":
        (meter.attach if way == "hooked" else meter.watch)(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for step in range(6):
        passes = (4, 6) if step % 4 > 1 else (10,)
        watching = meter if way == "aside" else None
        backward(model, watching, problem, passes, 10 * world, world, generator, scale=8.0)
        if way != "plain":
            meter.measure(10, 10 * world, step, scale=8.0)
            sums = torch.tensor(meter.pop(), dtype=torch.float64)
            dist.all_reduce(sums, group=group)
            meter.push(sums.tolist())
        tensors = [p.grad for p in model.parameters()] + list(model.buffers())
        found += [None if t is None else t.flatten().tolist() for t in tensors]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    readings = meter.state_dict()["exact"]["count"]
    assert readings == (0 if way == "plain" else 3), readings
    return found


def compared(groups: dict[int, Any], rank: int) -> Iterator[tuple[str, Any]]:
    """What each way of measuring leaves, beside plain DDP."""
    for world, uneven, views in product((2, 3), (False, True), (False, True)):
        if rank < world:
            for way in ("plain", "hooked", "aside"):
                found = trained(groups[world], rank, way=way, uneven=uneven, views=views)
                yield f"{world} {uneven} {views} {way}", found


def worker(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder / 'meeting'}"  # no port that somebody else may have
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=WORLD)
    groups = {n: dist.new_group(list(range(n))) for n in (1, 2, 3, 4)}
    results: dict[str, Any] = {}
    for case in cases():
        if rank < len(case.shares):
            results[case.name] = run_case(case, rank, groups[len(case.shares)])
    results |= compared(groups, rank)
    (folder / f"{rank}.json").write_text(json.dumps(results))
    dist.barrier()
    dist.destroy_process_group()


def launch(folder: Path) -> list[dict[str, Any]]:
    """The results of every rank."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, __file__, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(WORLD)]


def main() -> None:
    """Import once, then fork: four imports of torch would take longer than all cases."""
    children = []
    for rank in range(WORLD):
        if not (child := os.fork()):
            worker(rank, Path(sys.argv[1]))
            os._exit(0)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.exit(max(map(abs, codes)))


if __name__ == "__main__":
    main()
