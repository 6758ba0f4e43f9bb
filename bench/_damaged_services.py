"""A real service on a harmed store, and what is asked of it: `boa serve` in forked children.

A fork has everything imported already, and makes its plans itself, so that a start takes a tenth of
a second. It dies with the one that forked it.
"""

import ctypes
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _damages import DAMAGES, Scene
from boa.cli import main
from boa.client import Client
from boa.engines.launching import free_port
from boa.errors import BoaError
from boa.runtime import assemble, calculator
from boa.scheduler.plan.calculator import InlineCalculator
from boa.server import service as imported

PR_SET_PDEATHSIG = 1
ALREADY = (assemble, imported)
"""Modules that a service needs, imported before it is forked."""
TOKEN = "harmed-0123456789abcdef0123456789abcdef"
PATIENCE_S = 60.0
SAME = ("id", "name", "class", "submitted_at")
SAME_AT_THE_END = ("state", "exit_code", "started_at", "ended_at")
ENDED = ("succeeded", "failed", "stopped")


@dataclass(frozen=True)
class Said:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def is_clear(self) -> bool:
        """One line, which is no bug and no traceback."""
        lines = [line for line in self.err.splitlines() if not line.startswith("{")]
        odd = ("Traceback", "bug in boa", "unexpected ")
        return len(lines) == 1 and not any(word in self.err for word in odd)


@dataclass
class Running:
    """A command in a child of this process."""

    folder: Path
    words: Sequence[str]
    pid: int = 0
    url: str = ""

    def start(self) -> None:
        port = free_port()
        words = [*self.words, "--port", str(port)] if self.words[0] == "serve" else self.words
        self.url = f"http://127.0.0.1:{port}"
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._be(words)

    def _be(self, words: Sequence[str]) -> None:
        code = 70
        try:
            os.setsid()
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            calculator.BackgroundCalculator = InlineCalculator  # type: ignore[misc, assignment]
            for number, name in ((1, "out"), (2, "err")):
                file = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(file, number)
            sys.stdout, sys.stderr = (os.fdopen(fd, "w", closefd=False) for fd in (1, 2))
            os.environ["BOA_TOKEN"] = TOKEN
            os.environ["BOA_HOME"] = str(self.folder / "home")
            code = main(list(words))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def ended(self, patience_s: float = PATIENCE_S) -> Said | None:
        """None: not within that time."""
        deadline = time.monotonic() + patience_s
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                out, err = ((self.folder / name).read_text("utf-8") for name in ("out", "err"))
                self.pid = 0
                return Said(os.waitstatus_to_exitcode(status), out, err)
            if time.monotonic() > deadline:
                return None
            time.sleep(0.01)

    def up(self) -> Said | None:
        """None: it answers. Otherwise how it ended, or that it hangs."""
        deadline = time.monotonic() + PATIENCE_S
        with Client(self.url, TOKEN, timeout=5.0) as client:
            while time.monotonic() < deadline:
                said = self.ended(0.0)
                if said is not None:
                    return said
                try:
                    client.health()
                    return None
                except BoaError:
                    time.sleep(0.02)
        self.kill()
        return Said(124, "", "it neither answers nor ends")

    def stop(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGTERM)
            if self.ended() is None:
                self.kill()

    def kill(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.ended()


def command(folder: Path, *words: str) -> Said:
    running = Running(folder, words)
    running.start()
    said = running.ended()
    if said is None:
        running.kill()
        return Said(124, "", "it does not end")
    return said


@contextmanager
def service(folder: Path, *words: str) -> Iterator[Running]:
    running = Running(folder, ["serve", "--config", str(_config(folder)), *words])
    running.start()
    try:
        yield running
    finally:
        running.stop()


def _config(folder: Path) -> Path:
    path = folder / "boa.json"
    document = {
        "version": 1,
        "budget_per_hour": 20.0,
        "gpu_types": {"slot": {"price": 1.0, "gpus_per_node": 4, "max_nodes": 4}},
        "data_dir": str(folder / "data"),
        "keep_warm_s": 600,
        "warm_parents": 0,
        "snapshots": {"every_h": 0},
    }
    path.write_text(json.dumps(document))
    return path


def job(name: str, *words: str) -> dict[str, Any]:
    limits = {"min": 1, "max": 1}
    return {"class": name, "run": list(words), "launcher": "single", "gpus": limits}


@dataclass(frozen=True)
class Scenes:
    """Data folders as a service left them, and the jobs that it acknowledged."""

    root: Path
    left: Sequence[str]
    """Names of folders: of a service that was killed, and of the same one stopped."""
    acknowledged: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """By folder, documents of jobs by id."""

    def copy(self, name: str, to: Path) -> Scene:
        shutil.copytree(self.root / name / "data", to / "data", symlinks=True)
        return Scene(to / "data", self.root / "older", self.root / "other" / "data")


def make_scenes(root: Path) -> Scenes:
    """A service that runs a few jobs, is stopped, goes on and is killed; and another."""
    home = root / "life"
    home.mkdir(parents=True)
    with service(home) as first, _client(first) as client:
        client.add_token("mia", "member")
        client.add_token("max", "viewer")
        client.revoke_token("max")
        for number in range(6):
            client.submit(job(f"c{number % 2}", "true"))
        _wait_for_ends(client)
    acknowledged: dict[str, Mapping[str, Mapping[str, Any]]] = {}
    with service(home) as second, _client(second) as client:
        for number in range(4):
            client.submit(job(f"c{number % 3}", "true"))
        _wait_for_ends(client)
        older = root / "older"
        older.mkdir()
        for name in ("boa.db", "boa.db-wal"):
            shutil.copy(home / "data" / name, older)
        said = command(home, "store", "snapshot", "--data", str(home / "data"))
        assert said.code == 0, said.err
        for number in range(5):
            client.submit(job(f"c{number % 2}", "true"))
        _wait_for_ends(client)
        client.submit(job("c0", "sleep", "1"))
        acknowledged["killed"] = _jobs(client)
        second.kill()
    (root / "killed").mkdir()
    shutil.copytree(home / "data", root / "killed" / "data", symlinks=True)
    with service(home) as third, _client(third) as client:
        _wait_for_ends(client)
        acknowledged["stopped"] = _jobs(client)
    (root / "stopped").mkdir()
    shutil.copytree(home / "data", root / "stopped" / "data", symlinks=True)
    (root / "other").mkdir()
    with service(root / "other") as other, _client(other) as client:
        for _ in range(3):
            client.submit(job("d", "true"))
        _wait_for_ends(client)
    return Scenes(root, ("killed", "stopped"), acknowledged)


def _client(running: Running) -> Client:
    said = running.up()
    assert said is None, said
    return Client(running.url, TOKEN)


def _jobs(client: Client) -> dict[str, Mapping[str, Any]]:
    return {found["id"]: dict(found) for found in client.jobs(all=True)}


def _wait_for_ends(client: Client) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while client.jobs():
        assert time.monotonic() < deadline, client.jobs()
        time.sleep(0.05)


# A trial


@dataclass
class Trial:
    number: int
    kind: str
    scene: str
    outcome: str = ""
    """`whole`: it came up with everything; `refused`: it said what is wrong, and ended with 2."""
    then: str = ""
    """After a refusal: `accepted` or `restored`, and then whole or with what it said to have lost;
    or `refused` still."""
    lost: int = 0
    violations: list[str] = field(default_factory=list)
    said: str = ""


def attempt(scenes: Scenes, number: int, kind: str, seed: int, folder: Path) -> Trial:
    """Harm a copy, start a service on it, and judge."""
    rng = random.Random(f"{seed}/{number}")
    name = rng.choice(list(scenes.left))
    trial = Trial(number, kind, name)
    folder.mkdir(parents=True)
    scene = scenes.copy(name, folder)
    DAMAGES[kind](rng, scene)
    acknowledged = scenes.acknowledged[name]
    with service(folder) as plain:
        said = plain.up()
        if said is None:
            trial.outcome = "whole"
            _judge(trial, plain, acknowledged, set(), "plain")
            return trial
    trial.outcome, trial.said = "refused", said.err.strip()[:400]
    if said.code != 2 or not said.is_clear:
        trial.violations.append(f"refused with {said.code}: {said.err.strip()[:300]}")
    checked = command(folder, "store", "check", "--data", str(scene.data), "--json")
    if checked.code not in (1, 2) or "Traceback" in checked.err or "bug in" in checked.err:
        trial.violations.append(f"check: {checked.code} {checked.err.strip()[:200]}")
    _go_on(trial, rng, scene, folder, acknowledged)
    return trial


def _go_on(
    trial: Trial,
    rng: random.Random,
    scene: Scene,
    folder: Path,
    acknowledged: Mapping[str, Mapping[str, Any]],
) -> None:
    """As the refusal says: with what is there, or with a copy."""
    if rng.random() < 0.5:
        trial.then, words = "accepted", ["--accept-store"]
    else:
        trial.then, words = "restored", []
        snapshot = next((scene.data / "snapshots").iterdir()).name
        said = command(folder, "store", "restore", snapshot, "--data", str(scene.data), "--json")
        if said.code != 0:
            trial.violations.append(f"restore: {said.code} {said.err.strip()[:200]}")
            return
    with service(folder, *words) as again:
        answer = again.up()
        if answer is not None:
            trial.then = f"{trial.then}, refused"
            if answer.code != 2 or not answer.is_clear:
                trial.violations.append(f"{trial.then}: {answer.code} {answer.err.strip()[:300]}")
            return
        gone = _given_up(scene.data)
        trial.lost = len(gone & {int(number) for number in acknowledged})
        _judge(trial, again, acknowledged, gone, trial.then)
        _judge_quarantine(trial, scene.data, gone)
    with service(folder) as third:
        answer = third.up()
        if answer is not None:
            trial.violations.append(f"not up again: {answer.code} {answer.err.strip()[:200]}")


def _given_up(data: Path) -> set[int]:
    said = command(data.parent, "store", "check", "--data", str(data), "--json")
    return {int(number) for number in json.loads(said.out)["given_up_jobs"]}


def _judge(
    trial: Trial,
    running: Running,
    acknowledged: Mapping[str, Mapping[str, Any]],
    gone: set[int],
    when: str,
) -> None:
    """Everything that was acknowledged is there, or was said to be lost; all of it works; and no
    number is given out again."""
    wrong = trial.violations
    with Client(running.url, TOKEN) as client:
        try:
            there = _jobs(client)
            for number, known in acknowledged.items():
                if number not in there:
                    if int(number) not in gone:
                        wrong.append(f"{when}: job {number} is missing unsaid")
                    continue
                wrong += _differences(when, there[number], known, bool(gone) or when != "plain")
                client.job(number)
            client.events()
            client.audit()
            client.tokens()
            client.cost()
            client.node_list()
            new = client.submit(job("c0", "true"))["id"]
        except BoaError as problem:
            wrong.append(f"{when}: half working: {problem}")
            return
        if int(new) <= max(map(int, acknowledged)):
            wrong.append(f"{when}: job {new} has a number that was given out before")
        deadline = time.monotonic() + PATIENCE_S
        while client.job(new)["state"] not in ENDED:
            if time.monotonic() > deadline:
                wrong.append(f"{when}: the next job does not end: {client.job(new)['reason']}")
                return
            time.sleep(0.05)


def _differences(
    when: str, found: Mapping[str, Any], known: Mapping[str, Any], is_older: bool
) -> list[str]:
    names = [*SAME]
    if known["state"] in ENDED and not is_older:
        names += SAME_AT_THE_END
    return [
        f"{when}: {name} of job {known['id']} is {found[name]!r}, was {known[name]!r}"
        for name in names
        if found[name] != known[name]
    ]


def _judge_quarantine(trial: Trial, data: Path, gone: set[int]) -> None:
    left = [
        str(path.relative_to(data))
        for folder in ("runs", "checkpoints")
        for path in (data / folder).glob("[0-9]*")
        if int(path.name) in gone
    ]
    if left:
        trial.violations.append(f"of jobs that nobody knows there are left: {left[:3]}")
