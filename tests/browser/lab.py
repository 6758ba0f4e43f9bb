"""A lab to look at: a real `boa serve` in compressed time, with jobs that replay real models."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from boa.api.answers import JobDetails
from boa.client.spawn import OwnService
from boa.errors import BoaError, NoServer
from boa.model.profile import ClassProfile
from boa.model.trace import Trace, TraceJob
from boa.sim.replay_jobs import profiles_of, replay_spec, write_profiles
from boa.sim.run import world_of

SPEED = 120.0
GPUS = ("T4", "A100")
PER_NODE = {"T4": 4, "A100": 4}
BUDGET = 75.0
CAP = 320.0
PER_HOUR = {"cifar10": 6.0, "bert": 4.0, "deepspeech2": 3.0}
"""How often jobs of each model are believed to come."""
LONGER = {"cifar10": 3.0, "bert": 3.0, "deepspeech2": 0.6}
"""They train so much longer than in the catalogue: a quarter of an hour, or 8 s here."""
USUAL = {"resnet18": 3, "bert": 2, "deepspeech2": 2}
STEADY: Mapping[str, Any] = {"times": 64.0, "replan_s": 14_400, "pacing_h": 8760}
"""Of a lab where nothing ends by itself while somebody looks, however slow the machine: jobs run
for nearly five minutes here or longer.

With `billing: gpu` no figure moves either that is shown: plans are made anew every two minutes, and
what a planned dollar comes to, which is measured all the time and moves every figure, is averaged
over a year. By default whole nodes are paid for, and jobs are rescaled whenever that is worth it.
"""
PATIENCE_S = 300.0


def _profiles(times: float) -> tuple[dict[str, ClassProfile], Mapping[str, float]]:
    """By application, and what a GPU of each type costs."""
    jobs = tuple(
        TraceJob(name=app, arrival_s=float(n), application=app) for n, app in enumerate(LONGER)
    )
    world = world_of(Trace(jobs), None, GPUS)
    known = {
        app: replace(profile, work=tuple(times * LONGER[app] * work for work in profile.work))
        for app, profile in profiles_of(world).items()
    }
    return known, {name: kind.price for name, kind in world.gpu_types.items()}


class Lab:
    """Its service, and ways to give it something to do.

    Jobs are `times` as long, and as rare; `busy` times as many come, for as much more money.
    """

    def __init__(
        self,
        folder: Path,
        *,
        times: float = 1.0,
        busy: float = 1.0,
        token: str | None = None,
        **settings: Any,
    ) -> None:
        profiles, prices = _profiles(times)
        self._profiles = {profile.name: profile for profile in profiles.values()}
        written = write_profiles(profiles, folder / "profiles")
        self._files = {profiles[app].name: path for app, path in written.items()}
        self._per_hour = {profiles[app].name: PER_HOUR[app] * busy / times for app in profiles}
        self._speed = float(settings.get("speed", SPEED))
        self.service = OwnService(
            folder / "service",
            {
                "budget_per_hour": BUDGET * busy,
                "max_spend_per_hour": CAP * busy,
                "speed": SPEED,
                "gpu_types": {
                    gpu: {"price": price, "gpus_per_node": PER_NODE[gpu], "max_nodes": 30}
                    for gpu, price in prices.items()
                },
                "keep_warm_s": 240,
                "local": {"provision_s": 120},
                "classes": {
                    profiles[app].name: {
                        "profile": str(path),
                        "arrivals_per_hour": self._per_hour[profiles[app].name],
                        "arrivals_weight_h": 1000,
                        "measured_weight": 1000,
                    }
                    for app, path in written.items()
                },
                **settings,
            },
            token,
        )

    @property
    def url(self) -> str:
        return self.service.url

    @contextmanager
    def running(self) -> Iterator["Lab"]:
        with self.service, self.service.client() as self.client:
            until("a plan is there", self._planned)
            try:
                yield self
            finally:
                self._end_all()

    def submit(self, job_class: str, name: str = "", **fields: Any) -> JobDetails:
        profile, file = self._profiles[job_class], self._files[job_class]
        return self.client.submit(replace(replay_spec(profile, file, name=name), **fields))

    def submit_talker(self, name: str, words: str = "still here") -> JobDetails:
        """A job that trains nothing: it says a line ten times a second until it is stopped."""
        script = (
            "import itertools, time\n"
            "for n in itertools.count(1):\n"
            f"    print({words!r}, n, flush=True); time.sleep(0.1)\n"
        )
        return self.client.submit(
            {
                "class": "talker",
                "name": name,
                "run": [sys.executable, "-c", script],
                "launcher": "single",
                "gpus": {"max": 1, "types": ["T4"]},  # no plan can move it
                "grace_s": 1,
            }
        )

    def fill(self) -> None:
        """Some jobs of every class; returns when they run."""
        for job_class, count in USUAL.items():
            for n in range(count):
                self.submit(job_class, f"{job_class}-{n + 1}")
        until("all run", lambda: len(self.client.jobs(states=["running"])) == sum(USUAL.values()))

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Jobs come meanwhile, as often as is believed, from a thread of its own."""
        over = threading.Event()
        thread = threading.Thread(target=self._stream, args=[over])
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _stream(self, over: threading.Event) -> None:
        began = time.monotonic()
        pace = {name: 3600 / self._speed / often for name, often in self._per_hour.items()}
        count = dict.fromkeys(pace, 0)
        due = {
            name: every * (n + 1) / 2 / len(pace) for n, (name, every) in enumerate(pace.items())
        }
        while True:
            name = min(due, key=lambda each: due[each])
            if over.wait(max(0.0, due[name] - (time.monotonic() - began))):
                return
            count[name] += 1
            due[name] += pace[name]
            self.submit(name, f"{name}-{count[name]}")

    def _planned(self) -> bool:
        try:
            return bool(self.client.plan())
        except BoaError:
            return False

    def state(self, job: str) -> str:
        return self.client.job(job)["state"]

    def was_asked_to_stop(self, job: str) -> bool:
        """Its state does not say: a job that nobody stops may be moved at any time."""
        return self.client.job(job)["stop_requested"]

    def _end_all(self) -> None:
        """Jobs outlive their service: none may outlive the test."""
        try:
            self.client.health()
        except NoServer:
            self.service.start()
        for job in self.client.jobs():
            self.client.stop(job["id"])
        until("all jobs have ended", lambda: not self.client.jobs(limit=1))


def until(what: str, true: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < deadline, f"not within {patience_s:g} s: {what}"
        time.sleep(0.1)
