"""A whole step of the control loop, store included, with jobs that are acted out."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from boa.catalogue.offers import gpu_types
from boa.catalogue.priors import catalogue_profile

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from live import Live, config, prior, spec

MODELS = ("resnet18", "bert", "deepspeech2", "yolov3")
GPU = "T4"


def scenes(jobs: int, folder: Path) -> tuple[Live, dict[str, Callable[[], None]]]:
    """A service with so many running jobs, and what may happen in one step of it."""
    types = gpu_types([GPU])
    known = {name: catalogue_profile(name, types) for name in MODELS}
    profiles = {name: found for name, found in known.items() if found is not None}
    per_hour = jobs / 4
    priors = {name: prior(found, per_hour) for name, found in profiles.items()}
    live = Live(
        config(folder, budget=8.0 * jobs, gpu_types=types, priors=priors, keep_warm_s=600.0),
        profiles,
    )
    live.settle()
    for n in range(jobs):
        live.loop.submit(spec(MODELS[n % len(MODELS)], epochs=100))
    live.settle()

    def arrival() -> None:
        live.loop.submit(spec(MODELS[0], epochs=100))
        live.loop.step()

    def new_plan() -> None:
        live.loop.scheduler.decider.fresh_plan = True
        live.loop.step()

    def listing() -> None:
        live.loop.actor.watch_cloud()
        live.loop.step()

    return live, {
        "nothing happens": live.loop.step,
        "the cloud lists its nodes": listing,
        "one job arrives": arrival,
        "a new plan is in force, all jobs asked": new_plan,
    }


def temporary() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="boa-steps-")
