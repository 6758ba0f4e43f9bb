"""What the local engine leaves on the disk: logs within their limits, outcomes in spite of all."""

import errno
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from boa.engines.folders import KEPT_ATTEMPTS
from boa.errors import InputError
from boa.model.runs import RunKey
from local_runs import Runs, until


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path)
    yield runs
    runs.close()


def test_a_job_that_prints_200_mb_stays_within_its_limit_and_is_not_held_up(runs: Runs) -> None:
    line, count = "x" * 63, 3_200_000
    key = runs.start("sh", "-c", f"yes {line} | head -n {count}; echo done; sleep 60")
    runs.until_printed(key, "done\n")
    kept = sum(file.path.stat().st_size for file in runs.engine.logs("1"))
    assert runs.log_bytes / 3 < kept <= runs.log_bytes
    text = runs.log(key).splitlines()
    assert set(text) - {"done"} == {line, text[0], *(t for t in text if t.startswith("[boa] "))}
    cut = int(text[0].removeprefix("[boa] ").split()[0])
    assert cut + text.count(line) * 64 == count * 64
    assert _most_memory_mb(runs.supervisor(key)) < 30


def _most_memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def test_logs_are_listed_by_attempt_and_rank_the_older_part_first(tmp_path: Path) -> None:
    runs = Runs(tmp_path, log_bytes=4096)
    for attempt in (9, 10):
        key = runs.start("sh", "-c", "seq 1000", attempt=attempt, slots=(tuple(range(11)),))
        runs.end(key)
    files = [(file.attempt, file.rank) for file in runs.engine.logs("1")]
    assert files == [(a, r) for a in (9, 10) for r in range(11) for _ in ("old", "new")]
    log = runs.log(RunKey("1", 9), rank=10).splitlines()
    assert [line for line in log if not line.startswith("[boa]")][-500:] == [
        str(n) for n in range(501, 1001)
    ]
    runs.close()


def test_a_job_without_runs_has_no_logs_and_names_lead_nowhere_else(runs: Runs) -> None:
    assert list(runs.engine.logs("77")) == []
    with pytest.raises(InputError):
        runs.engine.logs("../..")


def test_what_is_forgotten_leaves_its_logs_and_nothing_else(runs: Runs) -> None:
    key = runs.start("echo", "something", env_of_service={"BOA_REPORT_TOKEN": "secret"})
    runs.end(key)
    runs.engine.forget(key)
    left = {path.name for path in runs.folder(key).iterdir()}
    assert left == {"0.log", "0.times.log"}  # when its lines came, beside them
    assert runs.log(key) == "something\n"


def test_logs_of_the_newest_attempts_are_kept_and_those_not_yet_forgotten(runs: Runs) -> None:
    keys = [runs.start("echo", str(n), attempt=n) for n in range(1, KEPT_ATTEMPTS + 4)]
    for key in keys:
        runs.end(key)
    for key in keys[1:]:
        runs.engine.forget(key)
    left = {file.attempt for file in runs.engine.logs("1")}
    assert left == {1, *range(4, KEPT_ATTEMPTS + 4)}


def test_a_full_disk_delays_the_outcome_but_loses_nothing(runs: Runs) -> None:
    key = runs.start("sh", "-c", "until [ -e $BOA_CHECKPOINT_DIR/go ]; do sleep 0.01; done; exit 4")
    runs.until_up(key)
    supervisor = runs.supervisor(key)
    before = resource.prlimit(supervisor, resource.RLIMIT_FSIZE)
    resource.prlimit(supervisor, resource.RLIMIT_FSIZE, (0, before[1]))  # not a byte can be written
    worker = _only_child(supervisor)
    (runs.root / "checkpoints" / "1" / "go").touch()
    until(lambda: not Path(f"/proc/{worker}").exists())
    assert runs.told(key, ended=True) is None
    resource.prlimit(supervisor, resource.RLIMIT_FSIZE, before)
    assert runs.end(key).exit_code == 4


def _only_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def test_a_full_disk_when_starting_leaves_nothing_and_can_be_tried_again(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = runs.launch("echo", "began")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("boa.engines.local.os.rename", full)
        with pytest.raises(OSError, match="No space"):
            runs.engine.start(launch)
    assert not runs.engine.runs()
    assert not list((runs.root / "runs" / ".new").iterdir())
    runs.crash()
    assert not runs.engine.runs()
    runs.engine.start(launch)
    assert runs.end(launch.key).exit_code == 0
