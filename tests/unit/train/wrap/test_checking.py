"""`boa wrap --check` tells before a job is submitted what a stop would find."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TRAINING = """\
import os, sys, time
step = int(open("state.ckpt").read()) if os.path.exists("state.ckpt") and RESUMES else 0
while step < 2000:
    time.sleep(0.01)
    step += 1
    if step % 5 == 0:
        print(LINE.format(step=step), flush=True)
    if step % 50 == 0 and SAVES:
        open("part", "w").write(str(step))
        os.replace("part", "state.ckpt")
"""


def checked(
    folder: Path,
    *options: str,
    line: str = "step {step}/2000 loss 0.5",
    resumes: bool = True,
    saves: bool = True,
) -> tuple[int, dict[str, Any], subprocess.CompletedProcess[str]]:
    head = f"LINE, RESUMES, SAVES = {line!r}, {resumes}, {saves}\n"
    (folder / "train.py").write_text(head + TRAINING)
    given = ["--check", "--json", "--settle-s", "0.05", "--check-s", "60", *options]
    done = subprocess.run(
        [sys.executable, "-m", "boa", "wrap", *given, "--", sys.executable, "train.py"],
        env={**os.environ, "BOA_GRACE_S": "10"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    found = {finding["check"]: finding for finding in document["findings"]}
    assert document["ready"] == (done.returncode == 0)
    return done.returncode, found, done


def test_a_script_that_saves_and_resumes_is_ready(tmp_path: Path) -> None:
    code, found, done = checked(tmp_path)
    assert code == 0, done.stderr
    assert [name for name, finding in found.items() if finding["ok"]] == [
        *("progress", "total", "loss", "checkpoints", "resume")
    ]
    assert "/2000 loss 0.5'" in found["progress"]["seen"]
    assert found["total"]["seen"] == "2,000"
    assert "state.ckpt, every " in found["checkpoints"]["seen"]
    assert "step" in done.stderr, "what the script prints is seen, but is no part of the answer"


def test_a_script_that_begins_anew_is_told_so(tmp_path: Path) -> None:
    code, found, _ = checked(tmp_path, resumes=False)
    assert code == 1
    assert found["resume"]["seen"].startswith("started again, it begins at 5;")
    assert "--resume" in found["resume"]["to_do"]


def test_a_script_without_checkpoints_or_progress_is_told_what_to_do(tmp_path: Path) -> None:
    code, found, _ = checked(tmp_path, "--check-s", "1", line="{step}", saves=False)
    assert code == 1
    missing = {name for name, finding in found.items() if finding["ok"] is False}
    assert missing == {"progress", "checkpoints", "resume"}
    assert "--pattern" in found["progress"]["to_do"]
    assert "--checkpoints" in found["checkpoints"]["to_do"]
    assert found["total"]["ok"] is None, "good to have, but not needed"


@pytest.mark.parametrize("option", ["--check", "--check-s=0", "--width=0"])
def test_a_command_that_fails_is_not_ready(tmp_path: Path, option: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "boa", "wrap", "--check", option, "--", "sh", "-c", "exit 4"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if option == "--check":
        assert done.returncode == 1
        assert "exit code 4" in done.stdout
        assert "not elastic yet" in done.stdout
    else:
        assert done.returncode == 2
        assert f"{option.partition('=')[0]}: got '0'" in done.stderr
