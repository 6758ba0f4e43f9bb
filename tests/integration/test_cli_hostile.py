"""Values that nobody means: one line that names them and what would do, and nothing begun."""

from pathlib import Path

import pytest

from integration.runner import Boa

SIA = "name,time,application,num_replicas,batch_size\n"
RUBICK = "name,submission_time,duration,application,num_gpus,exec_plan,steps,is_sla\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--mix", "cifar10=1e308,bert=1e308", "--jobs", 3),
            "--mix: got '1e308'; expected a share",
        ),
        (("--hours", "1e308"), "--hours: got '1e308'; expected hours above 0, at most 1,000,000"),
    ],
)
def test_a_trace_without_end_is_not_begun(run: Boa, words: tuple[object, ...], said: str) -> None:
    assert run("trace", "generate", *words, code=2) == ""
    assert said in run.err
    assert "Warning" not in run.err


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (SIA + "a,1e308,cifar10,1,128\n", "column time: got '1e308'"),
        (RUBICK + "a,0,10,gpt2,1,zero-dp,99999999999999999999,0\n", "column steps: got '9999"),
    ],
)
def test_a_job_at_the_end_of_time_is_refused(
    run: Boa, tmp_path: Path, rows: str, said: str
) -> None:
    path = tmp_path / "far.csv"
    path.write_text(rows)
    run("simulate", path, "--policy", "fixed", "--width", 1, code=2)
    assert said in run.err
    assert "and <= 1e+" in run.err


def test_a_limit_that_is_broken_is_named(run: Boa, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text(SIA + "a,0,cifar10,1,128\nb,60,cifar10,1,128\n")
    run("simulate", path, "--policy", "optimus-price", "--knob", "1e308", code=2)
    assert "--knob: got '1e308'; expected a number above 0, at most 1e12" in run.err


@pytest.mark.parametrize(
    "words", [("simulate", "--policy", "fixed", "--width", "1"), ("workload", "from-trace")]
)
def test_names_out_of_a_trace_are_shown_and_not_obeyed(
    run: Boa, tmp_path: Path, words: tuple[str, ...]
) -> None:
    path = tmp_path / "red.csv"
    path.write_text(SIA + "\x1b[31mx,1,foo,1,128\n")
    command, options = (words[:1], words[1:]) if words[0] == "simulate" else (words, ())
    run(*command, path, *options, "--gpus", "T4", code=2)
    assert f"{path}: trace, line 2 (\\x1b[31mx), column application: got 'foo'" in run.err
    assert "\x1b[31mx" not in run.err
