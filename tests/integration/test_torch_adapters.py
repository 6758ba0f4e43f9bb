"""Users of Accelerate, Lightning and transformers keep their loop, and it goes on at any width."""

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from boa.train import checkpoints
from boa.train.keeper import pointer
from forked_scripts import Forked, Script
from keeping import keeper
from ports import held_port

PATIENCE_S = 600.0
"""Importing either library takes many seconds, and minutes where others have the cores."""
SAMPLES, STEPS, EPOCHS = 51, 7, 2  # those of adapted.py, which needs torch
LIBRARIES = ["accelerate", "lightning", "transformers"]


class Libraries:
    """Their scripts, each imported once, when it is first asked for; and torch once for all."""

    def __init__(self) -> None:
        self._torch = Script("adapted")
        self._scripts: dict[str, Script] = {}

    def script(self, library: str) -> Script:
        if library not in self._scripts:
            self._scripts[library] = Script(f"adapted_{library}", self._torch)
        return self._scripts[library]

    def close(self) -> None:
        for script in (*self._scripts.values(), self._torch):
            script.close()


@pytest.fixture(scope="module")
def libraries() -> Iterator[Libraries]:
    found = Libraries()
    yield found
    found.close()


class Training:
    """One job, attempt after attempt."""

    def __init__(
        self, libraries: Libraries, library: str, folder: Path, keeper: Path | None = None
    ) -> None:
        """`keeper`: the folder of one that holds its state in memory, if there is one."""
        self._keeper = keeper
        self._script = libraries.script(library.partition("_")[0])
        self._options = ["--tokens"] if library.endswith("_tokens") else []
        self.folder, self.checkpoints = folder, folder / "checkpoints"
        folder.mkdir()
        self._attempt = 0

    def run(
        self, width: int, *options: str, stop_after: int | None = None, to: int | None = None
    ) -> int:
        """Train to the end, or until stopped: SIGTERM, at a step, to one rank or to all.

        Gives the steps that the newest checkpoint has, or the state in memory.
        """
        self._attempt += 1
        pause = [] if stop_after is None else ["--pause", str(stop_after)]
        with self._started(width, [*pause, *options]) as ranks:
            if stop_after is not None:
                _wait_for_pause(ranks)
                for rank in ranks if to is None else [ranks[to]]:
                    rank.send_signal(signal.SIGTERM)
                for rank in ranks:
                    rank.stdin.write("go\n")
                    rank.stdin.flush()
            said = [rank.communicate()[1] for rank in ranks]
        assert [rank.returncode for rank in ranks] == [0] * width, "\n".join(said)
        return self._saved_steps()

    def killed(self, after: int, *options: str) -> int:
        """One process, saving as often as it can; SIGKILL when it has saved anything."""
        self._attempt += 1
        with self._started(1, ["--pause", str(after), "--save-every", "0", *options]) as ranks:
            _wait_for_pause(ranks)
            deadline = time.monotonic() + PATIENCE_S
            while not checkpoints.latest(self.checkpoints) and time.monotonic() < deadline:
                time.sleep(0.01)  # it may still be writing the first
        return self._saved_steps()

    def _saved_steps(self) -> int:
        if (left := pointer.newest(self.checkpoints)) is not None:
            return left.manifest.progress.step
        newest = checkpoints.latest(self.checkpoints)
        progress = checkpoints.progress_at(newest) if newest else None
        assert progress is not None
        return progress.step

    @contextmanager
    def _started(self, width: int, options: list[str]) -> Iterator[list[Forked]]:
        with held_port() as port:
            ranks = [self._start(rank, width, port, options) for rank in range(width)]
            watchdog = threading.Timer(PATIENCE_S, _kill, [ranks])
            watchdog.start()
            try:
                yield ranks
            finally:
                watchdog.cancel()
                for rank in ranks:
                    rank.kill()
                    rank.close()

    def _start(self, rank: int, width: int, port: int, options: list[str]) -> Forked:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("BOA_")},
            "RANK": str(rank),
            "WORLD_SIZE": str(width),
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(width),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "BOA_JOB_ID": "job",
            "BOA_WIDTH": str(width),
            "BOA_ATTEMPT": str(self._attempt),
            "BOA_EPOCHS": str(EPOCHS),
            "BOA_CHECKPOINT_DIR": str(self.checkpoints),
            "OMP_NUM_THREADS": "1",
        }
        if self._keeper is not None:
            environment["BOA_KEEPER"] = str(self._keeper)
        return self._script.start([str(self.folder), *self._options, *options], environment)

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "result.json").read_text())
        return found

    def seen(self) -> dict[int, Counter[int]]:
        """How often each sample was trained on, by epoch, over all attempts and ranks."""
        found = {epoch: Counter[int]() for epoch in range(EPOCHS)}
        for entry in self.diary("*"):
            if "indices" in entry:
                found[entry["epoch"]].update(entry["indices"])
        return found

    def diary(self, rank: str) -> list[dict[str, Any]]:
        files = sorted(self.folder.glob(f"*-{rank}.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def _wait_for_pause(ranks: list[Forked]) -> None:
    for rank in ranks:
        said = ""
        for line in rank.stdout:
            if line == "paused\n":
                break
            said += line  # a log of the library's
        else:
            _kill(ranks)
            raise AssertionError(said + "".join(rank.communicate()))


def _kill(ranks: list[Forked]) -> None:
    for rank in ranks:
        rank.kill()


@pytest.mark.slow
@pytest.mark.parametrize("library", [*LIBRARIES, "transformers_tokens"])
def test_rescaled_thrice_it_ends_where_it_would_have_ended(
    libraries: Libraries, library: str, tmp_path: Path
) -> None:
    steady = Training(libraries, library, tmp_path / "steady")
    assert steady.run(1) == STEPS * EPOCHS
    job = Training(libraries, library, tmp_path / "job")
    assert job.run(1, stop_after=2) == 3
    # where an epoch ends; both ranks after the same step, though only one is told
    assert job.run(2, stop_after=STEPS - 2, to=1) == STEPS
    assert job.run(1, stop_after=10) == 11
    assert job.run(2) == STEPS * EPOCHS

    once = Counter(dict.fromkeys(range(SAMPLES), 1))
    assert job.seen() == steady.seen() == dict.fromkeys(range(EPOCHS), once)
    assert job.result["weights"] == pytest.approx(steady.result["weights"], rel=1e-4, abs=1e-6)
    assert job.result["loss"] == pytest.approx(steady.result["loss"], rel=1e-4)
    assert job.result["rate"] == pytest.approx(0.05 * 0.97 ** (STEPS * EPOCHS))
    marks = [entry for entry in steady.diary("0") if "indices" not in entry]
    assert [entry for entry in job.diary("0") if "indices" not in entry] == marks


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_killed_and_stopped_at_one_width_it_is_the_same_to_the_last_bit(
    libraries: Libraries, library: str, tmp_path: Path
) -> None:
    steady = Training(libraries, library, tmp_path / "steady")
    steady.run(1, "--dropout", "0.5")
    job = Training(libraries, library, tmp_path / "job")
    assert 0 < job.killed(5, "--dropout", "0.5") <= 5
    assert job.run(1, "--dropout", "0.5", stop_after=9) == 10
    job.run(1, "--dropout", "0.5")
    assert job.result == steady.result


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_stopped_through_memory_it_is_the_same_to_the_last_bit(
    libraries: Libraries, library: str, tmp_path: Path
) -> None:
    steady = Training(libraries, library, tmp_path / "steady")
    steady.run(1, "--dropout", "0.5")
    with keeper(tmp_path / "keeper", "--breath-s", "1000000"):
        job = Training(libraries, library, tmp_path / "job", tmp_path / "keeper")
        assert job.run(1, "--dropout", "0.5", stop_after=5) == 6
        assert not checkpoints.newest_first(job.checkpoints)  # it is nowhere else
        assert job.run(1, "--dropout", "0.5") == STEPS * EPOCHS
    assert job.result == steady.result
    assert [entry["step"] for entry in job.diary("0") if "step" in entry] == [
        entry["step"] for entry in steady.diary("0") if "step" in entry
    ]
