"""Sweeps and terms from the command line: submitted, listed in one line, refused by name."""

from typing import Any

import pytest

from fakes import FakeService
from integration.runner import Boa

NET = ("submit", "--class", "net", "--epochs", 9)
COMMAND = ("--", "python", "train.py")


def test_a_sweep_is_submitted_whole_and_prints_its_id(run: Boa, service: FakeService) -> None:
    grid = ("--sweep", "lr=1e-4,3e-4", "--sweep", "seed=1..5", "--halving", "acc:max:2:3")
    assert run(*NET, *grid, *COMMAND) == "s1\n"
    assert run.err.strip() == "10 jobs: boa sweep show s1, boa sweep stop s1"
    sweep = service.control.sweeps["s1"]
    assert len(sweep.jobs) == 10
    assert sweep.halving is not None
    assert (sweep.halving.metric, sweep.halving.better) == ("acc", "max")
    assert (sweep.halving.factor, sweep.halving.first) == (2, 3)
    assert service.control.active["10"].spec.run[2:] == ("--lr", "3e-4", "--seed", "5")


def test_draws_come_from_ranges_however_long_those_are(run: Boa, service: FakeService) -> None:
    ranges = ("--sweep", "seed=1..1000000000", "--sweep", "lr=log:1e-5..1e-2")
    run(*NET, *ranges, "--draws", 3, *COMMAND)
    drawn = [dict(job.drawn) for job in service.control.active.values()]
    assert len(drawn) == 3
    assert all(1 <= int(row["seed"]) <= 10**9 for row in drawn)
    assert all(1e-5 <= float(row["lr"]) <= 1e-2 for row in drawn)


def test_ps_shows_a_sweep_in_one_line_and_its_jobs_when_asked(
    run: Boa, service: FakeService
) -> None:
    run(*NET, "--sweep", "lr=1,2,3", *COMMAND)
    service.submit("bert")
    assert len([line for line in run("ps").splitlines() if " net " in line]) == 1
    assert "3 jobs: 3 waiting" in run("ps")
    assert len([line for line in run("ps", "--sweep", "s1").splitlines() if " net " in line]) == 3
    assert len(run.json("ps")["jobs"]) == 4, "programs see jobs"


WRONG: list[tuple[list[Any], str]] = [
    (["--sweep", "lr"], "--sweep: got 'lr'"),
    (["--sweep", "lr="], "--sweep"),
    (["--sweep", "=1"], "parameters"),
    (["--sweep", "lr=1", "--sweep", "lr=2"], "each name once"),
    (["--sweep", "lr=1..1000000000"], "at most 1,000 numbers"),
    (["--sweep", "lr=5..1"], "a rising range"),
    (["--sweep", "lr=a..b"], "--sweep"),
    (["--sweep", "lr=nan..1", "--draws", 3], "a finite number"),
    (["--sweep", "lr=1e308..1e309", "--draws", 3], "parameters.lr.low"),
    (["--sweep", "lr=0..0.5"], "draws: missing"),
    (["--sweep", "lr=a\nb"], "on one line"),
    (["--sweep", "lr=1", "--draws", 10**9], "draws"),
    (["--sweep", "lr=1", "--halving", ""], "--halving"),
    (["--sweep", "lr=1", "--halving", "loss:up"], "halving.better"),
    (["--sweep", "lr=1", "--halving", "loss:min:3:9"], "epochs, which are 9"),
    (["--sweep", "lr=1", "--key", "a"], "job.key"),
    (["--halving", "loss"], "go with --sweep"),
    (["--draws", 3], "go with --sweep"),
    (["--after", "1:maybe"], "one of success, failure, end"),
    (["--after", ""], "the id of a job"),
    (["--after", "1,1:end"], "each job once"),
    (["--max-cost", "nan"], "--max-cost"),
    (["--max-cost", "1e308"], "max_cost"),
    (["--max-time", "-5s"], "--max-time"),
    (["--deadline", "2020-01-01"], "has passed"),
    (["--deadline", "1000000000d"], "deadline_s"),
    (["--key", ""], "key"),
    (["--key", "a\nb"], "key"),
]


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_every_wrong_option_is_one_error_and_nothing_is_submitted(
    run: Boa, service: FakeService, options: list[Any], words: str
) -> None:
    run(*NET, *options, *COMMAND, code=2)
    assert words in run.err
    assert run.err.count("error:") == 1
    assert service.control.active == {}


def test_jobs_are_changed_paused_and_resumed_from_the_command_line(
    run: Boa, service: FakeService
) -> None:
    run(*NET, "--max-cost", 5, *COMMAND)
    assert run("job", "pause", 1) == "job 1: paused\n"
    assert "paused" in run("ps")
    assert run("job", "resume", 1) == "job 1: resumed\n"
    run("job", "set", 1, "--weight", 3, "--max-gpus", 4, "--max-cost", "none")
    spec = service.control.active["1"].spec
    assert (spec.weight, spec.gpus.max, spec.max_cost) == (3, 4, None)
    assert run("job", "resubmit", 1, "--max-cost", 9) == "2\n"
    assert service.control.active["2"].spec.max_cost == 9
    run("job", "set", 1, code=2)
    run("job", "set", 1, "--weight", "-1", code=2)
    run("job", "pause", 99, code=2)
