"""`boa wrap --check` tells before a job is submitted what a stop would find."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from boa.cli.live import wrap
from boa.train import session
from boa.train.wrap import checking, running
from boa.train.wrap.account import Account, Mark

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
    assert found["GPUs"]["ok"] is found["batch"]["ok"] is None, "good to know, but not needed"
    assert [name for name, finding in found.items() if finding["ok"]] == [
        *("progress", "total", "loss", "checkpoints", "resume")
    ]
    assert "/2000 loss 0.5'" in found["progress"]["seen"]
    assert found["total"]["seen"] == "2,000 steps"
    assert "state.ckpt, about every " in found["checkpoints"]["seen"]
    assert "; the checkpoint is of about step " in found["resume"]["seen"], "lines say no more"
    assert "step" in done.stderr, "what the script prints is seen, but is no part of the answer"


def test_a_script_that_begins_anew_is_told_so(tmp_path: Path) -> None:
    code, found, _ = checked(tmp_path, resumes=False)
    assert code == 1
    assert found["resume"]["seen"].startswith("started again, its first line is of step 5;")
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


@pytest.mark.parametrize(
    ("lines", "saved", "said"),
    [
        ([1, 2, 3], [20, 40, 60], ", every 20 steps, every 2 s"),
        ([5, 10, 15], [15, 40, 55], ", about every 20 steps, every 2 s"),
        ([50, 100, 150], [0, 50, 50], ", every 2 s"),  # it saves more often than it prints
    ],
)
def test_how_often_it_saves_is_said_no_finer_than_its_lines_tell(
    monkeypatch: pytest.MonkeyPatch, lines: list[int], saved: list[int], said: str
) -> None:
    monkeypatch.setattr(session, "report", lambda **_: None)
    account = Account(Mark())
    for step in lines:
        account.hear({"step": step})
    written = [("x", Mark(count=count), 2.0 * number) for number, count in enumerate(saved)]
    trial: Any = SimpleNamespace(account=account, checkpoints=written)
    assert checking._interval(trial) == f"{said}: grace_s should be longer"


def test_samples_and_steps_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "report", lambda **_: None)
    account = Account(Mark(), per_step=32.0)
    for step in (1, 2):
        account.hear({"step": step, "total": 100})
    trial: Any = SimpleNamespace(account=account, lines=["step 1/100", "step 2/100"])
    assert checking._progress(trial).seen == "samples, 32 per step, from 'step 2/100'"
    assert checking._total(trial).seen == "3,200 samples (100 steps)"
    assert checking._words(account, account.now) == "step 2"


@pytest.mark.parametrize(
    ("command", "samples", "said"),
    [
        (["python", "t.py"], "", ["GPUs", "batch"]),
        (["python", "t.py"], "16*{width}", ["GPUs"]),
        (["python", "t.py", "--world", "{width}"], "", ["batch"]),
        (["torchrun", "t.py", "--batch-size", "{64/width}"], "", []),
    ],
)
def test_a_command_that_does_not_go_by_the_width_is_told_so(
    command: list[str], samples: str, said: list[str]
) -> None:
    wrapped = running.Wrapped(command=command, samples_per_step=samples)
    found = list(checking._gpus(wrapped))
    assert [finding.check for finding in found] == said
    if samples and said:
        assert found[0].seen.endswith("but --samples-per-step does")


@pytest.mark.parametrize("uses_width", [True, False])
def test_only_what_goes_by_the_width_is_called_elastic(
    capsys: pytest.CaptureFixture[str], uses_width: bool
) -> None:
    report = checking.Report(width=2, findings=(), uses_width=uses_width)
    assert wrap._checked(report, json=False) == 0
    said = " ".join(capsys.readouterr().out.split())
    unseen = "stops and resumes, but nothing in it goes by the number of GPUs."
    assert said.endswith("At 2 GPUs this command " + ("is elastic." if uses_width else unseen))
