"""When a run began to speak, by its workers' logs."""

from pathlib import Path

from boa.model.runs import LogFile
from boa.server.http.log_times import began_at


def test_a_run_whose_rank_0_said_nothing_began_when_another_spoke(tmp_path: Path) -> None:
    folder = tmp_path / "6" / "2"
    folder.mkdir(parents=True)
    for rank in range(3):
        (folder / f"{rank}.log").touch()
    files = [LogFile(attempt=2, rank=rank, path=folder / f"{rank}.log") for rank in range(3)]
    assert began_at(files) is None
    (folder / "1.times.log").write_text("0 1700000002.5\n40 1700000003.5\n")
    (folder / "2.times.log").write_text("0 1700000001.5\n")
    assert began_at(files) == 1700000001.5
