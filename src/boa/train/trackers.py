"""Experiment trackers: what a script logs there is seen as reports, and reports can go there.

Seen are TensorBoard's writers (torch's and tensorboardX's), MLflow's client and runs of Weights &
Biases, from the moment that they are imported. Where none of them is, nothing happens. MLflow loads
this module itself (its entry point `mlflow.run_context_provider`); for the others `boa.train` has
to be imported somewhere, or the script run by `boa wrap`.
"""

import contextlib
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from boa.train import session

TRACKED = "BOA_TRACKED"
"""Variable with a file to write what is seen to, a line each: for `boa wrap`, which reports it."""
EVERY_S = 1.0
"""Least time between two forwarded reports."""
LOSSES = ("loss", "train_loss", "training_loss", "train/loss", "training/loss", "loss/train")
"""Names of a metric that is the training's loss."""
NAMES = ("mlflow", "tensorboard", "wandb")
Target = Callable[[dict[str, float], int | None], object]
_echo = threading.local()
"""Whether this thread is forwarding: that is no news."""


def watch() -> None:
    """See what is logged from now on. Does nothing outside of a job, and nothing twice."""
    told = os.environ.get("BOA_REPORT_URL") or os.environ.get(TRACKED)
    if not told:
        return
    for name, patch in PATCHES.items():  # again, too: MLflow loads plugins half-way
        if (module := sys.modules.get(name)) is not None:
            _patched(module, patch)
    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def seen(metrics: Mapping[str, Any], step: Any = None) -> None:
    """Metrics that were logged somewhere. Whatever is wrong with them, it stops no training."""
    if getattr(_echo, "on", False) or os.environ.get("RANK", "0") != "0":
        return
    with contextlib.suppress(Exception):
        numbers = {str(n): v for n, v in metrics.items() if _number(v) is not None}
        at = _number(step)
        if path := os.environ.get(TRACKED):
            line = {"step": at, "metrics": {n: _number(v) for n, v in numbers.items()}}
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            return
        session.session().track(numbers, at, loss_of(numbers))


def loss_of(metrics: Mapping[str, Any]) -> Any:
    """The training's loss among them, if any."""
    lower = {name.lower(): value for name, value in metrics.items()}
    return next((lower[name] for name in LOSSES if name in lower), None)


# What is changed in them: their method, and then a look at what it was given


def _of_tensorboard(module: ModuleType) -> None:
    writer = module.SummaryWriter

    @functools.wraps(writer.add_scalar)
    def add_scalar(
        self: Any, tag: str, value: Any, global_step: Any = None, *a: Any, **k: Any
    ) -> Any:
        done = add_scalar.__wrapped__(self, tag, value, global_step, *a, **k)
        seen({tag: value}, global_step)
        return done

    @functools.wraps(writer.add_scalars)
    def add_scalars(
        self: Any, tag: str, values: Any, global_step: Any = None, *a: Any, **k: Any
    ) -> Any:
        done = add_scalars.__wrapped__(self, tag, values, global_step, *a, **k)
        seen({f"{tag}/{name}": value for name, value in dict(values).items()}, global_step)
        return done

    writer.add_scalar, writer.add_scalars = add_scalar, add_scalars


def _of_wandb(module: ModuleType) -> None:
    run = module.Run

    @functools.wraps(run.log)
    def log(self: Any, data: Any, step: Any = None, *a: Any, **k: Any) -> Any:
        done = log.__wrapped__(self, data, step, *a, **k)
        seen(data, step)
        return done

    run.log = log


def _of_mlflow(module: ModuleType) -> None:
    client = module.MlflowClient

    @functools.wraps(client.log_metric)
    def log_metric(self: Any, run_id: str, key: str, value: Any, *a: Any, **k: Any) -> Any:
        done = log_metric.__wrapped__(self, run_id, key, value, *a, **k)
        seen({key: value}, k.get("step", a[1] if len(a) > 1 else None))
        return done

    @functools.wraps(client.log_batch)
    def log_batch(self: Any, run_id: str, metrics: Any = (), *a: Any, **k: Any) -> Any:
        done = log_batch.__wrapped__(self, run_id, metrics, *a, **k)
        for each in metrics or ():
            seen({each.key: each.value}, each.step)
        return done

    client.log_metric, client.log_batch = log_metric, log_batch


PATCHES: dict[str, Callable[[ModuleType], None]] = {
    "torch.utils.tensorboard.writer": _of_tensorboard,
    "tensorboardX.writer": _of_tensorboard,
    "wandb.sdk.wandb_run": _of_wandb,
    "mlflow.tracking.client": _of_mlflow,
}


def _patched(module: ModuleType, patch: Callable[[ModuleType], None]) -> None:
    """Once; a version of theirs that is built otherwise is left alone."""
    if not getattr(module, "_boa_sees", False):
        with contextlib.suppress(Exception):
            patch(module)
            module._boa_sees = True  # type: ignore[attr-defined]


class _Finder(importlib.abc.MetaPathFinder):
    """Finds what is to be changed, as it always was found, and has it changed once it is there."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        patch = PATCHES.get(name)
        if patch is None:
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        if found is not None and found.loader is not None:
            run = found.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                _patched(module, patch)

            found.loader.exec_module = exec_module  # type: ignore[method-assign]
        return found


class MlflowContext:
    """MLflow's plugin: loaded when a run begins, and asked for tags of it."""

    def in_context(self) -> bool:
        watch()
        return bool(os.environ.get("BOA_JOB_ID"))

    def tags(self) -> dict[str, str]:
        names = {"boa.job": "BOA_JOB_ID", "boa.class": "BOA_CLASS", "boa.attempt": "BOA_ATTEMPT"}
        return {tag: os.environ.get(variable, "") for tag, variable in names.items()}


# The other way


def forward(*where: object, every_s: float = EVERY_S) -> None:
    """Have reports go to trackers as well, from rank 0, not more often than `every_s`.

    `where`: "mlflow", "wandb" (after `wandb.init`), "tensorboard" (a writer in $BOA_CHECKPOINT_DIR,
    or in ./runs), a SummaryWriter, or anything that is called with (metrics, step).
    """
    targets = [_target(each) for each in where]
    if session.session().context.rank == 0:
        session.session().forward_to(Forwarding(targets, every_s).offer)


class Forwarding:
    """Newest values win; what came too soon goes with the next, or at the end."""

    def __init__(self, targets: Sequence[Target], every_s: float) -> None:
        self._targets, self._every_s = list(targets), every_s
        self._next, self._waiting = 0.0, dict[str, float]()
        self._step: int | None = None

    def offer(self, metrics: Mapping[str, float], step: int | None, last: bool = False) -> None:
        self._waiting.update(metrics)
        self._step = self._step if step is None else step
        if not self._waiting or (time.monotonic() < self._next and not last):
            return
        given, self._waiting = self._waiting, {}
        self._next = time.monotonic() + self._every_s
        with _silently():
            for target in list(self._targets):
                try:
                    target(dict(given), self._step)
                except Exception as problem:  # whatever it is, training goes on
                    self._targets.remove(target)
                    print(f"boa: reports are not forwarded any more ({problem})", file=sys.stderr)


@contextlib.contextmanager
def _silently() -> Iterator[None]:
    _echo.on = True
    try:
        yield
    finally:
        _echo.on = False


def _target(where: Any) -> Target:
    if where == "mlflow":
        mlflow = _installed("mlflow")
        return lambda metrics, step: mlflow.log_metrics(metrics, step=step)
    if where == "wandb":
        wandb = _installed("wandb")
        return lambda metrics, step: wandb.log(metrics, step=step)
    if where == "tensorboard":
        _installed("tensorboard")
        folder = os.environ.get("BOA_CHECKPOINT_DIR")
        made = _installed("torch.utils.tensorboard").SummaryWriter
        where = made(os.path.join(folder, "tensorboard") if folder else None)
    if hasattr(where, "add_scalar"):
        return functools.partial(_write, where)
    if callable(where):
        return where  # type: ignore[no-any-return]
    raise ValueError(
        f"forward: got {where!r}; expected one of {', '.join(NAMES)}, a SummaryWriter, or a "
        "function of (metrics, step)"
    )


def _write(writer: Any, metrics: dict[str, float], step: int | None) -> None:
    for name, value in metrics.items():
        writer.add_scalar(name, value, step)
    writer.flush()


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ValueError(f"forward: {name} is not installed; expected one that is") from None


def _number(value: Any) -> float | None:
    return None if isinstance(value, str | bool) else session.finite(value)
