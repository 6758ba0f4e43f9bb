"""A script that nobody has touched stops at its own checkpoint, and goes on at another width."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boa.train import stopping
from boa.train.wrap import processes, running
from reporting import Service

SCRIPT = """\
import os, sys, time
steps, every, width = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
step = int(open("state.ckpt").read()) if os.path.exists("state.ckpt") else 0
print("begins at", step, "on", width, *sys.argv[4:], flush=True)
while step < steps:
    time.sleep(0.01)
    step += 1
    print(f"step {step} loss {1 / step}", flush=True)
    if step % every == 0:
        open("part", "w").write(str(step))
        os.replace("part", "state.ckpt")
"""


class Job:
    def __init__(self, folder: Path, service: Service) -> None:
        self.folder, self._service, self._attempt = folder, service, 0
        (folder / "train.py").write_text(SCRIPT)

    def start(
        self, *arguments: str, width: int = 1, grace_s: float = 60.0, **more: str
    ) -> subprocess.Popen[str]:
        self._attempt += 1
        own = {
            "BOA_ATTEMPT": str(self._attempt),
            "BOA_WIDTH": str(width),
            "BOA_GRACE_S": str(grace_s),
            "BOA_CHECKPOINT_DIR": str(self.folder / "home"),
            "BOA_REPORT_URL": self._service.url,
            "BOA_REPORT_EVERY_S": "0",
            "BOA_DONE": str(self.folder / "done"),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "boa", "wrap", "--settle-s", "0", *arguments],
            env={**os.environ, **own, **more},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def reports(self) -> list[dict[str, Any]]:
        return self._service.reports

    @property
    def is_done(self) -> bool:
        """Whether it has said so: by the file that engines look for, and in its reports."""
        by_file = (self.folder / "done").exists()
        assert by_file == any(report.get("done", False) for report in self.reports)
        return by_file

    def memory(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "home" / "boa-wrap.json").read_text())
        return found


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    service = Service()
    yield Job(tmp_path, service)
    service.close()


def command(steps: int, every: int) -> list[str]:
    return ["--", sys.executable, "train.py", str(steps), str(every), "{width}"]


def stopped_after(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if text in line:
            process.send_signal(signal.SIGTERM)
            break
    return said + process.communicate(timeout=120)[0]


def test_it_stops_at_its_next_checkpoint_and_goes_on_from_there(job: Job) -> None:
    process = job.start(*command(10**6, 10))
    said = stopped_after(process, "step 15 ")
    assert process.returncode == 0, said
    assert "stopped at" in said
    (at,) = job.memory()["saved"].values()
    saved = int((job.folder / "state.ckpt").read_text())
    assert saved >= 20
    last = job.start(*command(saved + 25, 10**6), width=2)
    said = last.communicate(timeout=120)[0]
    assert last.returncode == 0, said
    assert f"begins at {saved} on 2" in said
    reports = [each for each in job._service.reports if each["attempt"] == 2]
    assert reports[-1]["progress"] == saved + 25, "what was done before is not counted again"
    assert 25 <= reports[-1]["units"] <= saved + 25 - at["step"] + 10
    assert reports[-1]["loss"] == pytest.approx(1 / (saved + 25))


def test_what_a_launcher_printed_before_it_was_stopped_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However late it is read; what it says of the stop is."""
    torchrun, late, out = tmp_path / "torchrun", threading.Event(), io.BytesIO()
    torchrun.write_text(
        "#!/bin/sh\ntrap 'echo a long complaint; exit 1' TERM\n"
        "echo the last line; echo > x.ckpt; while :; do sleep 0.05; done\n"
    )
    torchrun.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    read, signalled = running.Run._read, processes.signalled

    def reading_late(self: running.Run) -> None:
        assert late.wait(300)
        read(self)

    def signalling(pid: int, number: signal.Signals) -> None:
        signalled(pid, number)
        late.set()

    monkeypatch.setattr(running.Run, "_read", reading_late)
    monkeypatch.setattr(processes, "signalled", signalling)
    monkeypatch.setattr(stopping, "stop_requested", (tmp_path / "x.ckpt").exists)
    monkeypatch.setattr(stopping, "asked_s_ago", lambda: 0.0)
    wrapped = running.Wrapped(command=[str(torchrun)], settle_s=0.0)
    ended = running.run(wrapped, {"PATH": os.environ["PATH"]}, lambda: out)
    assert (ended.exit_code, ended.stopped) == (0, True)
    assert out.getvalue() == b"the last line\n"


def test_a_script_that_ends_while_a_stop_waits_for_its_checkpoint_is_done(job: Job) -> None:
    """It went from step 150 of 150 back to step 120: exit 0 after a stop meant that it goes on."""
    process = job.start("--json", *command(150, 60))
    said = stopped_after(process, "step 125 ")
    assert process.returncode == 0, said
    assert "step 150 " in said
    assert '"done": true' in said
    assert '"stopped": false' in said
    assert job.is_done


def test_a_script_that_fails_while_a_stop_waits_has_failed(job: Job) -> None:
    process = job.start("--", "sh", "-c", "echo step 1; sleep 1; exit 3")
    stopped_after(process, "step 1")
    assert process.returncode == 3
    assert not job.is_done


LINGERING = """\
import sys, time, signal
if "--late" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if "--143" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
print("step 7/7", *sys.argv[1:], flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("arguments", "done"),
    [
        (["--max-steps", "7"], True),
        (["--max-steps", "7", "--143"], True),
        (["--late"], True),
        (["--143"], False),
        ([], False),
    ],
)
def test_one_that_has_reached_its_total_is_done_though_it_does_not_exit_in_time(
    job: Job, arguments: list[str], done: bool
) -> None:
    """If its own arguments give the total, or it exits with 0 at SIGTERM: what the log alone says
    may be one epoch's."""
    (job.folder / "lingering.py").write_text(LINGERING)
    start = ["--", sys.executable, "lingering.py", *arguments]
    process = job.start(*start, grace_s=2.0)
    said = stopped_after(process, "step 7/7")
    assert process.returncode == 0, said
    assert job.is_done == done


def test_one_that_stops_at_its_checkpoint_is_not_done(job: Job) -> None:
    process = job.start("--json", *command(10**6, 10))
    said = stopped_after(process, "step 15 ")
    assert '"done": false' in said
    assert '"stopped": true' in said
    assert not job.is_done


def test_one_that_ends_by_itself_is_done(job: Job) -> None:
    process = job.start(*command(5, 10))
    process.communicate(timeout=120)
    assert job.is_done


def test_it_reports_that_it_saves_and_when_it_did(job: Job) -> None:
    stopped_after(job.start(*command(10**6, 40)), "step 90 ")
    saved = [each for each in job.reports if "saved_s" in each]
    assert saved
    assert "saves" not in job.reports[0], "nothing is known before the first one"
    for report in saved:
        assert 0 < report["saved_s"] <= report["uptime_s"]
    assert job.reports[-1]["saves"] is True
    assert job.reports[-1]["saved_s"] > saved[0]["saved_s"]
    stopped_after(job.start(*command(10**6, 40)), "step 130 ")
    again = [each for each in job.reports if each["attempt"] == 2]
    assert again[0]["saves"] is True
    assert again[0]["saved_s"] == 0, "the one that it resumed from"


def test_checkpoints_that_come_too_late_for_its_grace_are_no_saving_at_a_stop(job: Job) -> None:
    process = job.start(*command(10**6, 100), grace_s=0.1)
    stopped_after(process, "step 250 ")
    assert any("saved_s" in report for report in job.reports)
    assert {report["saves"] for report in job.reports if "saves" in report} == {False}


def test_the_total_is_reported_in_samples_with_progress(job: Job) -> None:
    counted = "for n in range(1, 6): print(f'step {n}/9 loss 1', flush=True)"
    own = ["--samples-per-step", "16*{width}", "--", sys.executable, "-c", counted]
    job.start(*own, width=2).communicate(timeout=120)
    last = job.reports[-1]
    assert (last["progress"], last["units"], last["total"]) == (160, 160, 288)


@pytest.mark.parametrize("where", [["--resume", "--from {checkpoint} {8/width}"], []])
def test_a_placeholder_that_does_not_fit_is_refused_before_anything_starts(
    job: Job, where: list[str]
) -> None:
    touched = f"open({str(job.folder / 'touched')!r}, 'w')"
    last = [] if where else ["--accumulate={8/width}"]
    process = job.start(*where, "--", sys.executable, "-c", touched, *last, width=3)
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 2
    assert "{8/width}" in said
    assert "is 2.667 at 3 GPUs" in said
    assert "{8//width}" in said
    assert not (job.folder / "touched").exists()


def test_a_fixed_batch_per_gpu_is_noticed_once_and_told_what_to_do(job: Job) -> None:
    torchrun = job.folder / "torchrun"
    torchrun.write_text("#!/bin/sh\nexit 0\n")
    torchrun.chmod(0o755)
    (job.folder / "home").mkdir()
    (job.folder / "x.ckpt").touch()
    saved = {str(job.folder / "x.ckpt"): {"epoch": 0, "progress": 40, "step": 40}}
    paces = {"1": [400, 100], "2": [400, 98]}

    def said(*own: str, told: bool = False, paces: dict[str, list[int]] = paces) -> str:
        notes = {"first_epoch": None, "saved": saved, "paces": paces, "told": told}
        (job.folder / "home" / "boa-wrap.json").write_text(json.dumps(notes))
        return job.start(*own, str(torchrun), *more).communicate(timeout=120)[0]

    more: list[str] = []
    first = said("--")
    assert "4.08 steps/s at 2 GPUs, 4 steps/s at 1" in first
    assert "--samples-per-step" in first
    assert "{256/width}" in first
    assert said("--", told=True) == ""
    assert said("--samples-per-step", "16*{width}", "--") == ""
    assert said("--", paces={"1": [400, 100], "2": [400, 60]}) == "", "it rises"
    more = ["--batch-size={64/width}"]
    assert said("--") == ""


def test_notes_of_an_earlier_version_are_read(job: Job) -> None:
    (job.folder / "home").mkdir()
    (job.folder / "state.ckpt").write_text("40")
    saved = {str(job.folder / "state.ckpt"): {"epoch": 0, "progress": 40.0, "step": 40}}
    notes = {"first_epoch": None, "saved": saved}
    (job.folder / "home" / "boa-wrap.json").write_text(json.dumps(notes))
    job.start(*command(50, 100)).communicate(timeout=120)
    assert job.reports[-1]["progress"] == 50


def test_without_a_checkpoint_in_time_it_ends_within_its_grace_and_says_so(job: Job) -> None:
    process = job.start(*command(10**6, 10**6), grace_s=1.0)
    said = stopped_after(process, "step 5 ")
    assert process.returncode == 0
    assert "no checkpoint within 0.6 s" in said
    assert "goes on from the beginning" in said


def test_arguments_to_resume_are_added_where_there_is_a_checkpoint(job: Job) -> None:
    given = ["--resume", "--from {checkpoint}", *command(10, 10)]
    first = job.start(*given).communicate(timeout=120)[0]
    assert "begins at 0 on 1\n" in first
    again = job.start(*given).communicate(timeout=120)[0]
    assert f"begins at 10 on 1 --from {job.folder / 'state.ckpt'}\n" in again


@pytest.mark.parametrize(("shell", "code"), [("exit 7", 7), ("kill -9 $$", 128 + 9)])
def test_its_exit_code_is_the_commands(job: Job, shell: str, code: int) -> None:
    process = job.start("--", "sh", "-c", shell)
    process.communicate(timeout=120)
    assert process.returncode == code


def test_a_command_that_is_not_there_is_named(job: Job) -> None:
    missing = job.start("--", "no-such-thing")
    said = "COMMAND: got 'no-such-thing' (No such file or directory)"
    assert said in missing.communicate(timeout=120)[0]
    assert missing.returncode == 2


def test_a_signal_makes_it_save_where_it_knows_one(job: Job) -> None:
    save = "import signal,sys,time\n" + (
        "def save(*_):\n open('x.ckpt','w').write('1'); sys.exit(3)\n"
        "signal.signal(signal.SIGUSR1, save)\nprint('step 1', flush=True)\ntime.sleep(600)\n"
    )
    process = job.start("--signal", "USR1", "--", sys.executable, "-c", save)
    stopped_after(process, "step 1")
    assert process.returncode == 0
    assert list(job.memory()["saved"]) == [str(job.folder / "x.ckpt")]


def test_what_it_logs_to_trackers_is_reported_without_a_line_of_ours(job: Job) -> None:
    (job.folder / "tensorboardX").mkdir()
    (job.folder / "tensorboardX" / "__init__.py").write_text("from .writer import SummaryWriter\n")
    (job.folder / "tensorboardX" / "writer.py").write_text(
        "class SummaryWriter:\n"
        "    def add_scalar(self, tag, value, global_step=None): pass\n"
        "    def add_scalars(self, tag, values, global_step=None): pass\n"
    )
    script = (
        "import sys; sys.path.insert(0, '.')\nfrom tensorboardX import SummaryWriter\n"
        "w = SummaryWriter()\nfor n in range(1, 6): w.add_scalar('loss', 1 / n, n)\n"
    )
    done = job.start("--", sys.executable, "-c", script)
    said = done.communicate(timeout=120)[0]
    assert done.returncode == 0, said
    last = job._service.reports[-1]
    assert (last["units"], last["step"], last["loss"]) == (5, 5, 0.2)


def test_what_python_reads_as_it_starts_is_still_read_and_nothing_is_said_of_it(job: Job) -> None:
    (job.folder / "sitecustomize.py").write_text("import builtins; builtins.READ = 'read'\n")
    done = job.start("--", sys.executable, "-c", "print(READ)", PYTHONPATH=str(job.folder))
    assert done.communicate(timeout=120)[0] == "read\n"
    (job.folder / "sitecustomize.py").unlink()
    assert job.start("--", sys.executable, "-c", "").communicate(timeout=120)[0] == ""
