"""A folder that is packed with its job, through a real service: what runs is what was submitted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from boa.client.spawn import OwnService

CONFIG = {
    "budget_per_hour": 8.0,
    "speed": 60.0,
    "gpu_types": {"T4": {"price": 1.0, "gpus_per_node": 1, "max_nodes": 1}},
    "local": {"provision_s": 0, "release_s": 0},
}
SCRIPT = """\
import os, pathlib
print("word", pathlib.Path("word").read_text(), os.environ["SEED"], pathlib.Path("data").exists())
out = pathlib.Path(os.environ["BOA_ARTIFACTS"], "deep")
out.mkdir(exist_ok=True)
(out / "model.bin").write_bytes(b"weights")
"""


def boa(own: OwnService, *words: str, where: Path, code: int = 0) -> str:
    env = {**os.environ, "BOA_SERVER": own.url}
    done = subprocess.run(
        [sys.executable, "-m", "boa", *words],
        cwd=where,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def _submitted(said: str) -> str:
    """The job's id, which is all of stdout."""
    return said.splitlines()[0]


@pytest.fixture
def code(tmp_path: Path) -> Path:
    code = tmp_path / "code"
    (code / "data").mkdir(parents=True)
    (code / "train.py").write_text(SCRIPT)
    (code / "word").write_text("submitted")
    (code / "data/large").touch()
    (code / ".boaignore").write_text("data/\n")
    (code / "vars.env").write_text("SEED=41\n")
    python = f"[{sys.executable}, train.py]"
    text = f"class: net\nrun: {python}\npackage: workdir\nenv_file: vars.env\n"
    (code / "job.yaml").write_text(text)
    return code


def test_a_packed_job_runs_as_it_was_and_its_results_are_fetched(
    tmp_path: Path, code: Path
) -> None:
    with OwnService(tmp_path / "service", CONFIG) as own, own.client() as client:
        first = _submitted(boa(own, "submit", "job.yaml", where=code))
        (code / "word").write_text("changed since")  # which is another package
        second = _submitted(boa(own, "submit", "job.yaml", where=code))
        assert client.wait(first)["state"] == "succeeded", "".join(client.logs(first))
        assert client.wait(second)["state"] == "succeeded"
        assert "".join(client.logs(first)) == "word submitted 41 False\n"
        assert "".join(client.logs(second)) == "word changed since 41 False\n"
        listed = boa(own, "artifacts", "ls", first, where=tmp_path)
        assert "deep/model.bin" in listed
        assert "kept for another" in listed
        boa(own, "artifacts", "get", first, where=tmp_path)
        assert (tmp_path / f"job-{first}/deep/model.bin").read_bytes() == b"weights"
        wrong = boa(own, "artifacts", "get", first, "none", where=tmp_path, code=2)
        assert "boa artifacts ls" in wrong
        assert len(client.packages()["packages"]) == 2


def test_missing_folders_commands_and_scripts_are_errors_at_submission(
    tmp_path: Path, code: Path
) -> None:
    with OwnService(tmp_path / "service", CONFIG) as own, own.client() as client:
        for words, said in (
            (("--workdir", "/none", "--", "true"), "workdir"),
            (("--", "no-such-command"), "no-such-command"),
            (("--", sys.executable, "other.py"), "other.py"),
            (("--package", "--", sys.executable, "other.py"), ".boaignore"),
            (("--environment", "conda:none-of-it", "--", "true"), "conda"),
            (("--image", "pytorch/pytorch", "--", "true"), "Apptainer"),
            (("--env-file", "none", "--", "true"), "none"),
        ):
            answer = boa(own, "submit", "--class", "a", *words, where=code, code=2)
            assert said in answer, answer
            assert "Traceback" not in answer
        assert client.jobs(all=True) == []
