"""What halving saves: a sweep of 27 under a budget, against running all of them to their end.

The real loop, store and planner on a virtual clock; jobs are acted out, and report losses of curves
that cross (a good learning rate is slow at first). The bill is of whole nodes, idle ones included;
of that, `held` is what jobs had. Time is from the submission to the end of the last job. The regret
is how much worse the best job that was found is than the best of all 27.

.venv/bin/python bench/sweep.py [--seeds 5] [--budget 20] [--json FILE]
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from _table import Measured, show, write
from boa.formats.sweep import SweepSpec, read_sweep
from boa.model.records import Report

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from live import Live, config, prior, profile

HERE = Path(__file__).resolve().parent
EPOCHS = 27
EPOCH_S = 600.0
"""Of one GPU."""
RATES, DECAYS, SEEDS = (1e-4, 3e-4, 1e-3), (0.0, 0.01, 0.1), (1, 2, 3)
NOISE = 0.01
"""Standard deviation of a reported loss, as a part of it."""
HALVINGS: dict[str, Any] = {
    "all to the end": None,
    "one of 3, after 1, 3, 9": {"factor": 3},
    "one of 3, after 3, 9": {"factor": 3, "first": 3},
}
SCENES: dict[str, dict[str, Any]] = {
    "budget of the bill": {"billing": "node"},
    "the same, 3 nodes": {"billing": "node", "max_nodes": {"T4": 3}},
    "budget of GPUs held": {"billing": "gpu"},
}


@dataclass
class Curves:
    """Losses of every combination, by epochs done."""

    seed: int

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.seed)
        self._known: dict[tuple[str, ...], np.ndarray[Any, Any]] = {}
        epochs = np.arange(EPOCHS + 1)
        for n, rate in enumerate(RATES):
            for decay in DECAYS:
                for number in SEEDS:
                    floor = 0.3 + 0.2 * (n - 1) ** 2 + decay + 0.02 * random.standard_normal()
                    speed = 0.08 * (1 + n) * random.uniform(0.8, 1.25)
                    loss = floor + 2.0 * np.exp(-speed * epochs)
                    loss *= 1 + NOISE * random.standard_normal(len(epochs))
                    self._known[f"{rate:g}", f"{decay:g}", f"{number}"] = loss

    def loss(self, drawn: dict[str, str], epoch: int) -> float:
        key = (f"{float(drawn['lr']):g}", f"{float(drawn['decay']):g}", drawn["seed"])
        return float(self._known[key][min(epoch, EPOCHS)])

    @property
    def best(self) -> float:
        return min(float(loss[EPOCHS]) for loss in self._known.values())


def main() -> None:
    options = _arguments()
    console, status = Console(width=140), Console(stderr=True)
    table = Measured(
        f"A sweep of 27 jobs of {EPOCHS} epochs, never more than ${options.budget:g}/h; "
        f"means of {options.seeds} seeds",
        note="regret: final loss of the best job found above the best of all 27",
    )
    for scene, settings in SCENES.items():
        whole: dict[str, float] = {}
        for name, halving in HALVINGS.items():
            runs = []
            for seed in range(1, options.seeds + 1):
                runs.append(_run(settings, halving, seed, options.budget))
                status.print(scene, name, seed, runs[-1])
            mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            whole = whole or mean
            table.add(
                scene=scene,
                rule=name,
                bill_usd=mean["bill"],
                of_all=mean["bill"] / whole["bill"],
                held_usd=mean["held"],
                hours=mean["hours"],
                hours_of_all=mean["hours"] / whole["hours"],
                epochs=mean["epochs"],
                to_the_end=mean["succeeded"],
                regret=mean["regret"],
            )
    show(table, console)
    write(options.json, [table])
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=20.0, help="USD per hour")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "sweep.json")
    return parser.parse_args()


def _sweep(halving: Any) -> SweepSpec:
    job = {"class": "net", "run": "train", "launcher": "single", "epochs": EPOCHS}
    body = {
        "job": {**job, "gpus": {"max": 16}},
        "parameters": {"lr": list(RATES), "decay": list(DECAYS), "seed": list(SEEDS)},
    }
    return read_sweep(body if halving is None else {**body, "halving": halving})


def _run(settings: dict[str, Any], halving: Any, seed: int, budget: float) -> dict[str, float]:
    net = profile("net", work=(EPOCH_S,) * EPOCHS, alpha=0.85)
    curves = Curves(seed)
    with tempfile.TemporaryDirectory(prefix="boa-sweep-") as folder:
        known = {"net": prior(net, per_hour=2.0, weight_h=10.0)}
        given = config(
            Path(folder),
            budget=budget,
            max_spend=budget,
            priors=known,
            provision_s=120.0,
            **settings,
        )
        live = Live(given, {"net": net})

        def report(said: Report) -> None:
            job = live.loop.snapshot.jobs.get(said.job) or live.loop.state.jobs.get(said.job)
            if job is not None:
                said = replace(said, loss=curves.loss(dict(job.drawn), said.epoch))
            live.loop.report(said)

        live.engine.report = report
        live.settle()
        asked = live.loop.submit_sweep(_sweep(halving))
        live.settle()
        sweep = asked.result(timeout=0)
        began = live.clock.now()
        live.finish()
        jobs = [live.job(name) for name in sweep.jobs]
        ended = max(job.ended_at or began for job in jobs)
        live.advance(1800.0)  # until the last node is given back
        done = [job for job in jobs if job.state == "succeeded"]
        found = {
            "bill": live.loop.snapshot.money.total,
            "held": live.loop.snapshot.money.jobs,
            "hours": (ended - began) / 3600.0,
            "epochs": float(sum(EPOCHS if job in done else job.epoch for job in jobs)),
            "succeeded": float(len(done)),
            "regret": min(curves.loss(dict(job.drawn), EPOCHS) for job in done) - curves.best,
        }
        live.close()
    return found


if __name__ == "__main__":
    main()
