"""How a model is laid out on one real GPU: what `parallel="auto"` tries, learns and keeps.

The batch is more than the GPU has room for at once, so the first run is out of memory; every run
after that begins with what those before it have learned. It needs torch and NumPy alone:
PYTHONPATH=src python bench/gpu_layouts.py [--model 1.3b] [--batch 128]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from _gpu_models import large_models, numbers
from _table import Measured, show_plainly, write
from boa.model.exit_codes import AGAIN
from boa.train.torch import Elastic
from boa.train.torch.layout.applying import weighed
from boa.train.torch.layout.layouts import layout_named
from boa.train.torch.layout.needs import fixed_bytes
from boa.train.torch.wrapping import outline

HERE = Path(__file__).resolve().parent
TRIALS = "layouts.json"


def train(name: str, batch: int, steps: int, parallel: str, tiny: bool) -> None:
    """One run, as a job."""
    chosen = large_models(tiny=tiny)[name]
    run = Elastic(batch_size=batch, save_every_s=1e9)
    model = run.wrap(chosen.build, parallel=parallel)
    bank, optimizer = chosen.data(run.device), torch.optim.AdamW(model.parameters(), lr=3e-4)
    batches = run.loader(numbers())
    run.resume(model, optimizer)
    for _ in run.epochs(10**6):
        for (indices,) in batches:
            run.step(chosen.loss(model, bank, indices))
            if run.steps >= steps:
                os._exit(0)  # nothing to be saved


def attempts(options: argparse.Namespace, parallel: str, home: Path) -> list[dict[str, Any]]:
    """Runs one after the other, and what each of them left in the journal."""
    found = []
    for number in range(options.runs):
        words = [sys.executable, __file__, "--job", parallel, "--model", options.model]
        words += ["--batch", str(options.batch), "--steps", str(options.steps)]
        words += ["--tiny"] * options.tiny
        env = {**os.environ, "BOA_CHECKPOINT_DIR": str(home), "BOA_ATTEMPT": str(number + 1)}
        env |= {"BOA_GPU_TYPE": "here", "BOA_JOB_ID": "bench"}
        began = time.time()
        ended = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        said = [line for line in ended.stderr.splitlines() if line.startswith("boa:")]
        found.append({"run": number + 1, "code": ended.returncode, "took": time.time() - began})
        print(f"{parallel}, run {number + 1}: exit code {ended.returncode}; {' '.join(said)}")
        if ended.returncode not in (0, AGAIN):
            sys.exit(ended.stderr[-3000:])
    return found


def measured(options: argparse.Namespace, parallel: str) -> tuple[Measured, Measured]:
    title = f"transformer-{options.model}, {options.batch} samples a step, {parallel}"
    runs = Measured(f"{title}: runs", note=f"code {AGAIN}: out of memory, and to be tried again")
    trials = Measured(
        f"{title}: trials",
        note="fixed: weights, gradients and AdamW's state, as they are counted before anything "
        "runs; peak: the allocator's",
    )
    model = outline(large_models(tiny=options.tiny)[f"transformer-{options.model}"].build)
    sizes = weighed(model, None)
    with tempfile.TemporaryDirectory(prefix="boa-layouts-") as scratch:
        home = Path(scratch) / "checkpoints"
        for row in attempts(options, parallel, home):
            runs.add(**row)
        journal = home / TRIALS
        for trial in json.loads(journal.read_text()) if journal.exists() else ():
            fixed = fixed_bytes(sizes, layout_named(trial["layout"]), 1)
            seconds = trial.get("step_s") or float("nan")
            trials.add(
                layout=trial["layout"],
                local_batch=trial["local_batch"],
                out_of_memory=int(trial.get("out_of_memory", False)),
                step=seconds,
                peak_gb=(trial.get("peak_bytes") or float("nan")) / 1e9,
                fixed_gb=fixed / 1e9,
            )
    return runs, trials


def main() -> None:
    options = _arguments()
    if options.job:
        train(
            f"transformer-{options.model}", options.batch, options.steps, options.job, options.tiny
        )
        return
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    tables: list[Measured] = []
    for parallel in options.parallel:
        tables += measured(options, parallel)
        for table in tables[-2:]:
            show_plainly(table)
        write(options.json, tables, gpu=gpu, torch=torch.__version__)
    print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [name.removeprefix("transformer-") for name in large_models()]
    parser.add_argument("--model", choices=names, default="350m")
    parser.add_argument("--batch", type=int, default=128, help="samples of one step")
    parser.add_argument("--steps", type=int, default=26, help="of one run")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--parallel", nargs="+", default=["auto"], help="as wrap() takes it")
    parser.add_argument("--tiny", action="store_true", help="small models, to try the program")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "gpu_layouts.json")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
