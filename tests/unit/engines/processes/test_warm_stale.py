"""A warm parent that is killed is begun anew; torchrun's command line leaves the script's alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from boa.engines.launching import HERE, _torchrun
from local_runs import until
from warm_runs import Scripts


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Scripts]:
    made = Scripts(tmp_path)
    yield made
    made.engine.close()


def test_a_parent_that_was_ready_may_be_killed_once(runs: Scripts) -> None:
    for job, warm_again in (("1", True), ("2", True), ("3", False)):
        runs.end(runs.run("pass", job=job))
        if not warm_again:
            assert not runs.parents
            break
        (parent,) = runs.parents
        runs.until_ready()
        os.kill(parent, signal.SIGKILL)
        until(runs.parentless)


@pytest.mark.slow
def test_torchrun_passes_on_options_that_look_like_its_own(tmp_path: Path, port: int) -> None:
    script = tmp_path / "said.py"
    script.write_text("import sys; print(sys.argv[1:])")
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    agent = _torchrun(0, 1, 1, (HERE, port))
    command = [*agent, sys.executable, str(script), "--n", "5", "--log", "x"]
    said = subprocess.run(
        command, env={**os.environ, "PATH": place}, capture_output=True, text=True, timeout=600
    )
    assert "['--n', '5', '--log', 'x']" in said.stdout, said.stderr
