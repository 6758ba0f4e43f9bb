"""What a training script is told: its job, and when to stop. Nothing but the standard library."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from boa import train
from boa.train import job, stopping
from training import run_alone


def test_the_public_names_are_exactly_these() -> None:
    assert train.__all__ == [
        "JobContext",
        "Progress",
        "context",
        "done",
        "epoch",
        "epochs",
        "forward",
        "latest_checkpoint",
        "new_checkpoint",
        "report",
        "resume",
        "saved",
        "stop_requested",
        "total",
    ]
    assert all(hasattr(train, name) for name in train.__all__)


def test_it_needs_only_the_standard_library_and_no_network_until_there_is_a_server() -> None:
    loaded = run_alone("print(*sorted(sys.modules))").split()
    foreign = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    assert foreign <= {"boa", "__main__"}
    assert not {"socket", "ssl", "http.client", "urllib.request"} & set(loaded)


def test_outside_of_a_job_everything_works_and_nothing_happens(tmp_path: Path) -> None:
    script = """
import os
print(train.context(), train.resume(), train.latest_checkpoint(), train.stop_requested())
with train.new_checkpoint() as folder:
    (folder / "model").write_text("weights")
for epoch in train.epochs():
    train.report(samples=8, loss=0.5, epoch=epoch, accuracy=1)
print(epoch, folder.exists(), train.latest_checkpoint(), os.listdir())
"""
    out = run_alone(f"import os; os.chdir({str(tmp_path)!r})" + script)
    assert out.splitlines()[0].endswith("Progress(epoch=0, progress=0.0, step=0) None False")
    assert out.splitlines()[1] == "0 False None []"


def test_the_context_is_read_from_the_environment() -> None:
    assert job.read(
        {
            "BOA_JOB_ID": "12",
            "BOA_CLASS": "resnet",
            "BOA_WIDTH": "4",
            "BOA_GPU_TYPE": "T4",
            "BOA_ATTEMPT": "3",
            "BOA_CHECKPOINT_DIR": "/c",
            "BOA_EPOCHS": "9",
            "BOA_SPEED": "60",
            "RANK": "2",
            "WORLD_SIZE": "4",
            "LOCAL_RANK": "1",
        }
    ) == train.JobContext(
        job_id="12",
        job_class="resnet",
        width=4,
        rank=2,
        world_size=4,
        local_rank=1,
        gpu_type="T4",
        attempt=3,
        checkpoint_dir=Path("/c"),
        epochs=9,
        speed=60.0,
    )


def test_outside_of_a_job_the_width_is_torchruns() -> None:
    assert job.read({"WORLD_SIZE": "8", "RANK": "3"}) == train.JobContext(
        width=8, world_size=8, rank=3
    )


def test_variables_that_make_no_sense_count_as_not_said() -> None:
    assert job.read({"RANK": "first", "BOA_SPEED": "", "BOA_CHECKPOINT_DIR": ""}) == (
        train.JobContext()
    )


# Stopping


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process that has not asked yet."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(stopping, "_asked", None)
    monkeypatch.setattr(stopping, "_listening", None)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("listening")
def test_sigterm_asks_to_stop_and_does_nothing_else() -> None:
    assert not train.stop_requested()
    signal.raise_signal(signal.SIGTERM)
    assert train.stop_requested()


@pytest.mark.usefixtures("listening")
def test_a_handler_that_was_there_is_called_as_well() -> None:
    called = []
    signal.signal(signal.SIGTERM, lambda number, _: called.append(number))
    train.stop_requested()
    signal.raise_signal(signal.SIGTERM)
    assert called == [signal.SIGTERM]
    assert train.stop_requested()


def test_processes_that_a_script_forks_die_of_sigterm_as_ever() -> None:
    """Pools of data loaders are ended by it, and would be waited for in vain."""
    out = run_alone("""
import os, signal, time
train.context()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.write(writer, b"ready")
    time.sleep(60)
    os._exit(0)
os.read(reader, 5)
os.kill(child, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), train.stop_requested())
""")
    assert out == f"-{int(signal.SIGTERM)} False\n"


def test_it_may_be_asked_first_from_another_thread() -> None:
    out = run_alone("""
import os, signal, threading
other = threading.Thread(target=lambda: print(train.stop_requested()))
other.start()
other.join()
print(train.stop_requested())
os.kill(os.getpid(), signal.SIGTERM)
print(train.stop_requested())
""")
    assert out.split() == ["False", "False", "True"]


def test_a_process_that_is_at_its_end_is_not_killed_by_a_late_stop() -> None:
    """Ranks on other nodes may be told later, when the first has had all of them save and exit."""
    out = run_alone("""
import os
class Last:
    def __del__(self, kill=os.kill, me=os.getpid(), say=os.write):
        kill(me, 15)
        say(1, b"alive")
last = Last()
train.stop_requested()
""")
    assert out == "alive"
