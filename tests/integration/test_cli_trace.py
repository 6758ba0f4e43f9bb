"""`boa trace`: drawing, describing and converting traces from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from boa.catalogue import read_trace
from integration.runner import Boa

KEYS = {
    "jobs",
    "span_s",
    "arrivals_per_hour",
    "cv2",
    "peak_jobs_per_hour",
    "peaks",
    "load_gpus",
    "gpu_types",
    "applications",
    "drawn",
}
RUBICK = (
    "name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,is_sla\n"
    "v-0,0,3163.1,vit,2,16,0,zero-dp,37239,0\nl-1,1639,142.2,llama30,48,384,1.25,344,64,1\n"
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    rows = [f"job-{n},{n * 300},{'cifar10' if n % 3 else 'bert'},{4}" for n in range(1, 31)]
    path.write_text("\n".join(["name,arrival_s,application,gpus", *rows]))
    return path


def test_a_trace_is_drawn_to_stdout_or_into_a_file(run: Boa, tmp_path: Path) -> None:
    printed = run("trace", "generate", "--jobs", 50, "--seed", 3)
    assert run.err == ""
    path = tmp_path / "drawn.csv"
    assert run("trace", "generate", "--jobs", 50, "--seed", 3, "-o", path) == ""
    assert path.read_text() == printed
    assert f"trace written to {path}: 50 jobs" in run.err
    assert run("trace", "generate", "--jobs", 50, "--seed", 4) != printed


def test_both_kinds_of_file_hold_the_same_trace(run: Boa, tmp_path: Path) -> None:
    read = []
    for name in ("t.csv", "t.parquet"):
        done = run.json("trace", "generate", "--cv2", 2.65, "-o", tmp_path / name)
        assert (done["jobs"], done["file"]) == (960, str(tmp_path / name))
        read.append(read_trace(tmp_path / name))
        assert read[-1].span_s == done["span_s"]
    assert read[0] == read[1]


def test_mix_rate_hours_and_burstiness_are_those_asked_for(run: Boa, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    flags = ["--mix", "bert=3, vit=1", "--rate", 400, "--hours", 60, "--cv2", 4]
    run("trace", "generate", *flags, "-o", path)
    found = run.json("trace", "describe", path)
    assert found["arrivals_per_hour"] == pytest.approx(400, rel=0.05)
    assert 59 < found["span_s"] / 3600 < 60
    assert found["cv2"] == pytest.approx(4, rel=0.1)
    assert [a["name"] for a in found["applications"]] == ["bert", "vit"]
    assert found["applications"][0]["share"] == pytest.approx(0.75, abs=0.02)


def test_a_trace_like_another_keeps_its_jobs(run: Boa, trace: Path, tmp_path: Path) -> None:
    run("trace", "generate", "--like", trace, "-o", tmp_path / "t.csv")
    drawn = read_trace(tmp_path / "t.csv")
    assert len(drawn.jobs) == 30
    assert {job.gpus for job in drawn.jobs} == {4}
    assert set(drawn.counts()) == {"cifar10", "bert"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--cv2", "0.9"], "--cv2: got 0.9; expected a number from 1 (Poisson)"),
        (["--cv2", "much"], "--cv2: got 'much'"),
        (["--rate", "0"], "--rate: got '0'"),
        (["--rate", "1e9"], "--rate"),
        (["--jobs", "1.5"], "--jobs"),
        (["--hours", "inf"], "--hours"),
        (["--hours", "1e-6"], "none arrives"),
        (["--mix", "bert"], "--mix: got 'bert'"),
        (["--mix", "bert=1,bert=2"], "--mix"),
        (["--mix", "bert=-1"], "--mix"),
        (["--seed", "-1"], "--seed"),
        (["-o", "t.txt"], "ending in .csv or .parquet"),
        (["-o", "/nowhere/t.csv"], "no folder"),
        (["--jobs", "3", "--hours", "2"], "give one of them"),
        (["--like", "a.csv", "--mix", "bert=1"], "give one of them"),
        (["--like", "none.csv"], "none.csv: no such file"),
        (["--json"], "--json needs -o FILE"),
    ],
)
def test_what_cannot_be_drawn_is_one_line_and_exit_code_2(
    run: Boa, flags: list[str], said: str
) -> None:
    assert run("trace", "generate", *flags, code=2) == ""
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    assert said in run.err


def test_a_trace_is_described(run: Boa, trace: Path) -> None:
    found = run.json("trace", "describe", trace)
    assert set(found) == KEYS
    assert run.err == ""
    assert (found["jobs"], found["span_s"], found["cv2"]) == (30, 9000, 0)
    assert found["arrivals_per_hour"] == 12
    assert found["peak_jobs_per_hour"] == 12
    assert found["applications"][0] == {
        "name": "cifar10",
        "jobs": 20,
        "share": 20 / 30,
        "mean_gpus": 4.0,
    }
    said = run("trace", "describe", trace)
    for words in ("30 in 2 h 30 min, 12.0 per hour", "C²", "12 in an hour", "GPUs (T4)", "cifar10"):
        assert words in said


def test_the_load_is_the_cheapest_spend_of_the_workload(run: Boa, trace: Path) -> None:
    made = trace.with_suffix(".yaml")
    run("workload", "from-trace", trace, "--gpus", "T4", "-o", made)
    cheapest = run.json("frontier", made)["cheapest_per_hour"]
    assert run.json("trace", "describe", trace)["load_gpus"] == pytest.approx(cheapest)
    both = run.json("trace", "describe", trace, "--gpus", "T4,A100")
    assert both["load_gpus"] < cheapest
    assert both["gpu_types"] == ["T4", "A100"]


def test_a_load_that_nobody_can_know_is_null_and_said_to_be(run: Boa, trace: Path) -> None:
    trace.write_text(trace.read_text().replace("bert", "alexnet"))
    found = run.json("trace", "describe", trace)
    assert found["load_gpus"] is None
    assert run.err == "no load: there are no profiles of alexnet\n"
    assert "load" not in run("trace", "describe", trace)
    run("trace", "describe", trace, "--gpus", "H900", code=2)
    assert "--gpus: got 'H900'" in run.err
    run("trace", "describe", trace, "--profiles", trace.parent / "none", code=2)


def test_rubick_s_models_are_counted_in_a800(run: Boa, tmp_path: Path) -> None:
    path = tmp_path / "rubick.csv"
    path.write_text(RUBICK)
    found = run.json("trace", "describe", path)
    assert found["gpu_types"] == ["A800"]
    assert found["load_gpus"] > 0
    assert run.json("trace", "describe", path, "--gpus", "T4")["load_gpus"] is None


def test_jobs_that_all_arrive_at_once_are_described_without_rates(run: Boa, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,arrival_s,application\na,0,bert\nb,0,bert\n")
    found = run.json("trace", "describe", path, "--plot", tmp_path / "t.svg")
    assert (found["arrivals_per_hour"], found["cv2"], found["load_gpus"]) == (None, None, None)
    assert found["peak_jobs_per_hour"] == 2
    assert "2 in 0 s" in run("trace", "describe", path)
    run("trace", "generate", "--like", path, code=2)
    assert str(path) in run.err
    run("trace", "generate", "--like", path, "--rate", 5)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_any_trace_is_converted_without_loss(run: Boa, tmp_path: Path, name: str) -> None:
    source, target = tmp_path / "rubick.csv", tmp_path / name
    source.write_text(RUBICK)
    assert run("trace", "convert", source, "-o", target) == ""
    assert f"trace written to {target}: 2 jobs" in run.err
    assert read_trace(target) == read_trace(source)
    done = run.json("trace", "convert", target, "-o", tmp_path / "again.csv")
    again = str(tmp_path / "again.csv")
    assert done == {"file": again, "jobs": 2, "span_s": 1639.0, "drawn": None}
    assert read_trace(tmp_path / "again.csv") == read_trace(source)


def test_a_file_that_is_no_trace_cannot_be_converted(run: Boa, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing PAR1")
    run("trace", "convert", tmp_path / "bad.parquet", "-o", tmp_path / "t.csv", code=2)
    assert "bad.parquet: not Parquet" in run.err
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "html"])
def test_the_picture_is_a_file_of_the_kind_asked_for(
    run: Boa, trace: Path, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"t.{suffix}"
    run.json("trace", "describe", trace, "--plot", path)
    assert f"picture written to {path}" in run.err
    beginning = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!doctype html>"}
    first = path.read_bytes()
    assert first.startswith(beginning[suffix])
    run.json("trace", "describe", trace, "--plot", path)
    assert path.read_bytes() == first, "the same trace gives the same file"


def test_the_page_says_what_is_in_every_bin_and_escapes_names(run: Boa, tmp_path: Path) -> None:
    nasty, path = "<script>alert(1)</script>", tmp_path / "t.csv"
    rows = [f"j{n},{n * 600},{nasty if n % 2 else 'bert'}-{n % 20}" for n in range(100)]
    path.write_text("\n".join(["name,arrival_s,application", *rows]))
    run("trace", "describe", path, "--plot", tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text()
    assert "<script" not in page
    assert "14 others" in page
    assert page.count("<title>") == 1 + int(np.ceil(99 * 600 / 1800))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;-1: 1" in page


def test_every_trace_command_teaches_with_examples(run: Boa) -> None:
    for command in ("generate", "describe", "convert"):
        said = run("trace", command, "--help")
        assert f"$ boa trace {command}" in said
        assert "--json" in said


def test_newtrace_is_as_bursty_and_as_mixed_as_the_paper_says(run: Boa, shared_data: Path) -> None:
    folder = shared_data / "sia" / "workloads" / "newtrace"
    found = [run.json("trace", "describe", folder / f"workload-{n}.csv") for n in range(1, 6)]
    assert all(2.3 < trace["cv2"] < 2.9 for trace in found)
    assert np.mean([trace["cv2"] for trace in found]) == pytest.approx(2.65, abs=0.15)
    assert all(trace["arrivals_per_hour"] == pytest.approx(20, rel=0.01) for trace in found)
    first = found[0]
    assert first["load_gpus"] == pytest.approx(95.7, abs=0.05)
    shares = {a["name"]: round(100 * a["share"], 2) for a in first["applications"]}
    assert shares == {
        "cifar10": 50.42,
        "deepspeech2": 23.54,
        "bert": 21.67,
        "yolov3": 3.75,
        "imagenet": 0.62,
    }


def test_the_profiles_give_the_load_that_the_catalogue_gives(run: Boa, shared_data: Path) -> None:
    trace = shared_data / "sia" / "workloads" / "newtrace" / "workload-1.csv"
    flags = ["--gpus", "T4", "--profiles", shared_data / "sia" / "traces"]
    learned = run.json("trace", "describe", trace, *flags)
    assert learned == json.loads(run("trace", "describe", trace, "--json"))
