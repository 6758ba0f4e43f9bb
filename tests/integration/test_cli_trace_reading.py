"""Logs of clusters, stretches and higher rates, from the command line."""

from pathlib import Path

import pytest

from boa.catalogue import read_trace
from integration.runner import Boa

HEADER = "job_id,submission_time,duration,num_gpu\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A job every ten minutes for ten hours, two GPU-hours each, and one that is too short."""
    path = tmp_path / "cluster.csv"
    rows = [f"j-{n},{5000 + 600 * n},3600,2" for n in range(60)]
    path.write_text(HEADER + "\n".join([*rows, "short,6000,10,1"]) + "\n")
    return path


def test_a_log_is_converted_and_what_was_drawn_is_told(run: Boa, log: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    done = run.json("trace", "convert", log, "-o", path, "--seed", 3)
    assert done["jobs"] == 60
    assert done["drawn"] == {"recipe": "sia", "seed": 3, "left_out": 1}
    said = "models drawn by Sia's recipe, seed 3; 1 of the log left out, under 60 s or over 1,000"
    assert said in run.err
    assert set(read_trace(path).counts()) == {"bert", "deepspeech2"}


def test_the_same_seed_writes_the_same_file(run: Boa, log: Path, tmp_path: Path) -> None:
    texts = []
    for seed in (0, 0, 1):
        run("trace", "convert", log, "-o", tmp_path / "t.csv", "--seed", seed)
        texts.append((tmp_path / "t.csv").read_text())
    assert texts[0] == texts[1] != texts[2]


def test_a_stretch_at_ten_times_the_rate(run: Boa, log: Path, tmp_path: Path) -> None:
    flags = ("--from-h", 2, "--hours", 5, "--rate-factor", 10)
    run("trace", "convert", log, *flags, "-o", tmp_path / "t.csv")
    found = run.json("trace", "describe", tmp_path / "t.csv")
    assert (found["jobs"], found["span_s"]) == (30, 29 * 60)
    straight = run.json("trace", "describe", log, *flags)
    assert straight == {**found, "drawn": {"recipe": "sia", "seed": 0, "left_out": 1}}


def test_a_workload_from_a_log_is_that_of_the_trace_it_becomes(
    run: Boa, log: Path, tmp_path: Path
) -> None:
    flags = ("--hours", 6, "--seed", 2)
    direct = run.json("workload", "from-trace", log, "--gpus", "T4", *flags)
    run("trace", "convert", log, *flags, "-o", tmp_path / "t.csv")
    assert run.json("workload", "from-trace", tmp_path / "t.csv", "--gpus", "T4") == direct
    assert {c["name"] for c in direct["classes"]} == {"bert", "deepspeech2"}


def test_a_log_can_be_simulated_and_drawn_from(run: Boa, tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    path.write_text(HEADER + "".join(f"j-{n},{600 * n},900,1\n" for n in range(4)))
    found = run.json("simulate", path, "--policy", "reservation", "--gpus", "T4", "--perfect")
    assert found["completed"] == 4
    assert run.err == "models drawn by Sia's recipe, seed 0\n"
    run("trace", "generate", "--like", path, "--rate-factor", 10, "-o", tmp_path / "t.csv")
    assert set(read_trace(tmp_path / "t.csv").counts()) == {"cifar10"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--from-h", "-1"], "--from-h: got '-1'; expected a finite number of hours >= 0"),
        (["--from-h", "99"], "--from-h: got 99.0; expected an hour of the trace; its last is 9.8"),
        (["--from-h", "1.1", "--hours", "0.01"], "--hours: got 0.01; expected more hours"),
        (["--hours", "0"], "--hours: got '0'"),
        (["--rate-factor", "0"], "--rate-factor: got '0'; expected a number above 0"),
        (["--rate-factor", "many"], "--rate-factor: got 'many'"),
        (["--recipe", "helios"], "--recipe: got 'helios'; expected one of sia, pollux"),
        (["--seed", "-1"], "--seed"),
        (["--profiles", "nowhere"], "nowhere: no such folder"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exit_code_2(
    run: Boa, log: Path, tmp_path: Path, flags: list[str], said: str
) -> None:
    for command in (
        ["trace", "convert", log, "-o", tmp_path / "t.csv"],
        ["trace", "describe", log],
    ):
        run(*command, *flags, code=2)
        assert run.err.startswith("error: ")
        assert run.err.count("\n") == 1
        assert said in run.err


def test_a_bad_cell_is_one_line_and_exit_code_2(run: Boa, log: Path, tmp_path: Path) -> None:
    log.write_text(log.read_text().replace("j-3,6800,3600,2", "j-3,6800,3600,two"))
    for command in (
        ["trace", "convert", log, "-o", tmp_path / "t.csv"],
        ["workload", "from-trace", log, "--gpus", "T4"],
        ["simulate", log, "--policy", "reservation"],
    ):
        run(*command, code=2)
        assert f"{log}, line 5, column num_gpu: got 'two'; expected a number >= 1" in run.err


def test_the_mix_of_newtrace_at_many_times_its_rate_is_one_command(
    run: Boa, tmp_path: Path
) -> None:
    for factor in (10, 100):
        path = tmp_path / f"{factor}.csv"
        run("trace", "generate", "--cv2", 2.65, "--rate-factor", factor, "--jobs", 9600, "-o", path)
        found = run.json("trace", "describe", path)
        assert found["arrivals_per_hour"] == pytest.approx(20 * factor, rel=0.1)
        assert found["cv2"] == pytest.approx(2.65, rel=0.15)
        shares = {a["name"]: a["share"] for a in found["applications"]}
        assert shares["cifar10"] == pytest.approx(484 / 960, abs=0.02)
    run("trace", "generate", "--rate-factor", 100_000, code=2)
    assert "--rate-factor: got 100000.0; expected a factor that leaves jobs per hour" in run.err
