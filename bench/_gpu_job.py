"""A training under the local engine that writes down when it has come how far.

_gpu_job.py MODEL MARKS STEPS [tiny] [memory]: lines of JSON go to the file MARKS; rank 0 writes.
memory: it is not ready to be stopped before there is memory to leave its state in.
"""

import json
import sys
import time

ENTERED = time.time()

import torch  # noqa: E402

from _gpu_models import large_models, models, numbers  # noqa: E402
from boa.train.torch import Elastic, Stopped  # noqa: E402

IMPORTED = time.time()
name, marks, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
tiny = "tiny" in sys.argv
chosen = {**models(tiny=tiny), **large_models(tiny=tiny)}[name]


def mark(**what: object) -> None:
    if run.ranks.rank == 0:
        with open(marks, "a") as file:
            file.write(json.dumps({"at": time.time(), **what}) + "\n")


def settle() -> None:
    if run.device.type == "cuda":
        torch.cuda.synchronize()


run = Elastic(batch_size=chosen.batch, save_every_s=1e9)
mark(what="entered", entered=ENTERED, imported=IMPORTED)
settle()
mark(what="joined")
model = run.wrap(chosen.build)
bank = chosen.data(run.device)
optimizer = chosen.optimizer(model)
settle()
mark(what="built")
batches = run.loader(numbers())
run.resume(model, optimizer)
settle()
mark(what="loaded")
done, enough = 0, False
try:
    for _ in run.epochs(10**6):
        for (indices,) in batches:
            loss = chosen.loss(model, bank, indices)
            run.step(loss)
            done += 1
            if done == 1:
                settle()
                mark(what="first step", loss=float(loss))
            if run.loss is not None:
                mark(what="step", step=run.steps, loss=run.loss)
            if done >= steps and not enough and ("memory" not in sys.argv or run.has_memory):
                settle()
                enough = True
                mark(what="enough", steps=done)
except Stopped:
    mark(what="saved")
    raise
