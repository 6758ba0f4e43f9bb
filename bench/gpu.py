"""What `boa.train.torch` does on a real GPU: pace, noise, saves, restarts, loss over rescalings.

It needs torch and NumPy alone: PYTHONPATH=src python bench/gpu.py [--only noise,save]
`--tiny` tries the program itself, on a CPU if need be; its figures say nothing.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.nn.parallel import DistributedDataParallel

from _gpu_models import BANK, Model, large_models, models
from _gpu_runs import Runs, losses_of, restarts_of
from _table import Measured, show_plainly, write
from boa.goodput.fit import Measurements, fit_throughput, relative_errors
from boa.train.checkpoints import Progress
from boa.train.torch import Checkpointer, NoiseMeter, Ranks
from boa.train.torch.noise import EARLY, EVERY
from boa.train.torch.wrapping import synchronise

HERE = Path(__file__).resolve().parent
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WINDOW = 25
"""Steps over which losses are averaged."""
ALONE = Ranks(0, 1, 0, 1, DEVICE)


class Trainer:
    """One model on one GPU, and as little as possible around it."""

    def __init__(self, model: Model, *, ddp: bool = False) -> None:
        torch.manual_seed(0)
        self.of = model
        with DEVICE:
            self.model: nn.Module = model.build()
        if ddp:
            self.model = DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        self.optimizer = model.optimizer(self.model)
        self.bank = model.data(DEVICE)
        self.steps = 0

    def step(self, batch: int, measure: Callable[[int], None] | None = None) -> None:
        start = self.steps * batch % (BANK - batch + 1)
        chosen = torch.arange(start, start + batch, device=DEVICE)
        self.of.loss(self.model, self.bank, chosen).backward()
        if measure is not None:
            measure(self.steps)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1

    def seconds(
        self, batch: int, steps: int, measure: Callable[[int], None] | None = None
    ) -> float:
        """Of one step, in a row of so many."""
        settle()
        began = time.perf_counter()
        for _ in range(steps):
            self.step(batch, measure)
        settle()
        return (time.perf_counter() - began) / steps


def settle() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def throughput(model: Model, options: argparse.Namespace) -> Measured:
    """Step times by batch size, and what the fitted model says of them."""
    trainer = Trainer(model)
    measured = []
    for batch in model.batches:
        try:
            trainer.seconds(batch, 5)
            steps = max(5, int(options.window_s / trainer.seconds(batch, 5)))
            measured.append((batch, median(trainer.seconds(batch, steps) for _ in range(3))))
        except torch.cuda.OutOfMemoryError:
            break
    batches, seconds = (np.array(column, dtype=float) for column in zip(*measured, strict=True))
    ones = np.ones_like(batches)
    points = Measurements(ones, ones, batches, seconds, seconds)
    fitted = fit_throughput(points)
    errors = relative_errors(fitted, points)
    table = Measured(
        f"{model.name}: step time by batch size",
        note=f"fitted: alpha_c {fitted.alpha_c:.6g} s, beta_c {fitted.beta_c:.6g} s per sample",
    )
    for batch, second, error in zip(batches, seconds, errors, strict=True):
        table.add(
            batch=int(batch),
            step_ms=1e3 * float(second),
            samples_per_s=float(batch / second),
            fitted_ms=1e3 * (fitted.alpha_c + fitted.beta_c * float(batch)),
            fit_gap=float(error),
        )
    return table


def noise(model: Model, options: argparse.Namespace) -> Measured:
    """Step time with the noise meter and without, in turns."""
    table = Measured(
        f"{model.name}: overhead of measuring the gradient's noise, batch {model.batch}"
    )
    for kind in ("one process", "DDP", "DDP, comm hook"):
        ddp = kind != "one process"
        plain, metered = Trainer(model, ddp=ddp), Trainer(model, ddp=ddp)
        meter = _meter(metered, hooked=kind == "DDP, comm hook")
        measure = _measuring(meter, metered)
        steps = max(10, int(options.window_s / plain.seconds(model.batch, 10)))
        steps += -steps % EVERY  # as many readings in every window
        metered.seconds(model.batch, 250, measure)  # past the first readings, which come often
        pairs = [
            (plain.seconds(model.batch, steps), metered.seconds(model.batch, steps, measure))
            for _ in range(options.repeats)
        ]
        found = None if ddp else meter.statistics
        table.add(
            how=kind,
            plain_ms=1e3 * median(a for a, _ in pairs),
            measured_ms=1e3 * median(b for _, b in pairs),
            above=median(b / a for a, b in pairs) - 1,
            noise_scale=None if found is None else found.noise_scale,
        )
    return table


def _meter(metered: Trainer, *, hooked: bool) -> NoiseMeter:
    meter = NoiseMeter(ALONE, metered.model.parameters(), base_batch=metered.of.batch)
    if isinstance(metered.model, DistributedDataParallel):
        (meter.attach if hooked else meter.watch)(metered.model)
        # one rank learns nothing by comparing itself with others, and would go on as in the
        # beginning, when readings come often
        state = meter.state_dict()
        state["exact"] |= {"count": EARLY, "weight": 1.0}
        meter.load_state_dict(state)
    return meter


def _measuring(meter: NoiseMeter, metered: Trainer) -> Callable[[int], None]:
    batch = metered.of.batch

    def measure(step: int) -> None:
        meter.measure(batch, batch, step)
        meter.push(meter.pop())
        synchronise(metered.model, not meter.aside)  # the next one

    synchronise(metered.model, not meter.aside)
    return measure


def save(model: Model, options: argparse.Namespace) -> Measured:
    """A save in the background: how long training stalls, and how it fares meanwhile."""
    trainer = Trainer(model)
    usual = trainer.seconds(model.batch, 20)
    stalls, meanwhile, background, blocking, size = [], [], [], [], 0
    with tempfile.TemporaryDirectory(prefix="boa-gpu-", dir=options.folder) as scratch:
        home = Path(scratch) / "checkpoints"
        checkpoints = Checkpointer(home, ALONE)
        for round_ in range(options.repeats + 1):
            for wait in (False, True):
                shutil.rmtree(home, ignore_errors=True)  # two of a large model may not fit
                settle()
                began = time.perf_counter()
                parts, optim = get_state_dict(trainer.model, trainer.optimizer)
                checkpoints.save(
                    tensors={"model": parts, "optimizer": optim},
                    shared={},
                    own={},
                    progress=Progress(0, 0.0, trainer.steps),
                    wait=wait,
                )
                settle()
                took = time.perf_counter() - began
                if wait:
                    blocking.append(took)
                    continue
                stalls.append(took)
                meanwhile.append(trainer.seconds(model.batch, 10))
                checkpoints.finish()
                background.append(time.perf_counter() - began)
            if round_ == 0:  # buffers are made the first time; told apart
                first = stalls.pop()
                meanwhile.pop(), background.pop(), blocking.pop()
        size = sum(p.stat().st_size for p in home.rglob("*") if p.is_file())
    table = Measured(f"{model.name}: a checkpoint", note="stall: from asking to training on")
    table.add(
        megabytes=size / 1e6,
        first_stall_s=first,
        stall_s=median(stalls),
        background_s=median(background),
        step_ms=1e3 * usual,
        step_meanwhile_ms=1e3 * median(meanwhile),
        blocking_s=median(blocking),
    )
    return table


def restart(model: Model, options: argparse.Namespace) -> Measured:
    """From the stop of one attempt to the first step of the next, by parts, cold and warm."""
    table = Measured(
        f"{model.name}: stop, save, start, load, first step: seconds",
        note="medians; total: from the call of stop to the end of the first step, once the old "
        "processes are gone the new ones are started",
    )
    with tempfile.TemporaryDirectory(prefix="boa-gpu-", dir=options.folder) as scratch:
        for how in ("cold", "warm"):
            runs = Runs(Path(scratch) / how, model.name, tiny=options.tiny, warm=how == "warm")
            table.add(how=how, **restarts_of(runs, options.repeats))
    return table


def loss(model: Model, options: argparse.Namespace) -> Measured:
    """One training with five rescalings against the same without, and that one against itself."""
    pieces = [(width, options.steps // 6) for width in (1, 2, 1, 2, 1, 2)]
    curves = {}
    with tempfile.TemporaryDirectory(prefix="boa-gpu-", dir=options.folder) as scratch:
        for how, plan in (
            ("none", [(1, options.steps)]),
            ("none again", [(1, options.steps)]),
            ("five rescalings", pieces),
        ):
            runs = Runs(Path(scratch) / how.replace(" ", "-"), model.name, tiny=options.tiny)
            curves[how] = losses_of(runs, plan)
    table = Measured(
        f"{model.name}: loss over {options.steps} steps",
        note="rescaled between one and two processes that share the GPU (Gloo), every "
        f"{options.steps // 6} steps; difference: the largest between means over {WINDOW} steps",
    )
    reference = _smooth(curves["none"])
    for how, curve in curves.items():
        smooth = _smooth(curve)
        common = sorted(reference.keys() & smooth.keys())
        table.add(
            how=how,
            first_loss_value=curve[min(curve)],
            last_loss_value=curve[max(curve)],
            steps=max(curve),
            largest_difference=max(abs(smooth[n] - reference[n]) for n in common),
        )
    return table


def _smooth(curve: dict[int, float]) -> dict[int, float]:
    """Means over stretches of steps; of those that were read nearly whole."""
    found: dict[int, list[float]] = {}
    for step, value in curve.items():
        found.setdefault(step // WINDOW, []).append(value)
    whole = {key: values for key, values in found.items() if len(values) > 0.8 * WINDOW}
    return {key: float(np.mean(values)) for key, values in whole.items()}


SECTIONS = {
    "throughput": throughput,
    "noise": noise,
    "save": save,
    "restart": restart,
    "loss": loss,
}


def main() -> None:
    options = _arguments()
    gpu = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "none"
    backend = "nccl" if DEVICE.type == "cuda" else "gloo"
    alone = dist.TCPStore("127.0.0.1", 0, world_size=1, is_master=True)  # at any free port
    dist.init_process_group(backend, store=alone, rank=0, world_size=1)
    tables: list[Measured] = []
    for section in options.only:
        for model in _chosen(options):
            tables.append(SECTIONS[section](model, options))
            show_plainly(tables[-1])
            write(options.json, tables, gpu=gpu, torch=torch.__version__)
    dist.destroy_process_group()
    print(f"written to {options.json}")


def _chosen(options: argparse.Namespace) -> list[Model]:
    """Large ones only by name."""
    usual = models(tiny=options.tiny)
    if not options.model:
        return list(usual.values())
    return [{**large_models(tiny=options.tiny), **usual}[options.model]]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(SECTIONS))
    known = [*models(), *large_models()]
    parser.add_argument("--model", default="", choices=["", *known], help="this one alone")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=600, help="of the loss curves")
    parser.add_argument("--window-s", type=float, default=1.0, help="of one measurement")
    parser.add_argument("--folder", help="where checkpoints go; default: the system's temporary")
    parser.add_argument("--tiny", action="store_true", help="small models, to try the program")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "gpu.json")
    options = parser.parse_args()
    unknown = [name for name in options.only if name not in SECTIONS]
    if unknown:
        sys.exit(f"--only: got {unknown[0]!r}; expected some of {', '.join(SECTIONS)}")
    return options


if __name__ == "__main__":
    main()
