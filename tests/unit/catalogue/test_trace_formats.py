"""Reading traces: three formats told by their header, and one clear error for each bad file."""

from pathlib import Path

import pytest

from boa.catalogue import dump_trace, read_trace
from boa.errors import FileError, InputError
from boa.model.trace import Trace, TraceJob

SIA = (
    "name,time,application,num_replicas,batch_size\na-0,10.5,bert,12,384\nb-1,7200,cifar10,8,2048\n"
)
RUBICK = (
    "name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,is_sla\n"
    "v-0,0,3163.1,vit,2,16,0,zero-dp,37239,0\nl-1,1639,142.2,llama30,48,384,1.25,344,64,1\n"
)
OWN = "name,arrival_s,application,gpus,batch_size\nx,3600,bert,,\ny,0,bert,4,96\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return path


def test_sia_and_pollux_traces_are_told_by_their_time_column(tmp_path: Path) -> None:
    jobs = read_trace(written(tmp_path, SIA)).jobs
    assert jobs[0] == TraceJob(
        name="a-0", arrival_s=10.5, application="bert", gpus=12, batch_size=384
    )
    assert [job.line for job in jobs] == [2, 3]


def test_rubick_traces_keep_steps_plan_duration_and_guarantee(tmp_path: Path) -> None:
    assert read_trace(written(tmp_path, RUBICK)).jobs[1] == TraceJob(
        name="l-1",
        arrival_s=1639.0,
        application="llama30",
        gpus=48,
        steps=64,
        plan="344",
        guaranteed=True,
        duration_s=142.2,
    )


def test_our_own_traces_may_leave_cells_empty_and_come_in_any_order(tmp_path: Path) -> None:
    jobs = read_trace(written(tmp_path, OWN)).jobs
    assert [(job.name, job.gpus, job.batch_size) for job in jobs] == [
        ("y", 4, 96),
        ("x", None, None),
    ]


def test_columns_are_read_by_header_whatever_their_order(tmp_path: Path) -> None:
    swapped = "\ufeffbatch_size,application,name,num_replicas,time\n384,bert,a-0,12,10.5\n"
    job = read_trace(written(tmp_path, swapped)).jobs[0]
    assert (job.arrival_s, job.batch_size) == (10.5, 384)


@pytest.mark.parametrize("text", [SIA, RUBICK, OWN])
def test_any_trace_survives_being_written_in_our_own_format(tmp_path: Path, text: str) -> None:
    trace = read_trace(written(tmp_path, text))
    assert read_trace(written(tmp_path, dump_trace(trace))) == trace


def test_rates_are_jobs_over_the_time_to_the_last_arrival(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, SIA))
    assert trace.span_s == 7200
    assert trace.arrivals_per_hour() == {"bert": 0.5, "cifar10": 0.5}


def test_jobs_that_all_arrive_at_once_have_no_rate() -> None:
    trace = Trace((TraceJob(name="a", arrival_s=0, application="bert"),))
    with pytest.raises(InputError, match="spread over time"):
        trace.arrivals_per_hour()


def test_mean_steps_are_known_only_if_every_job_has_them(tmp_path: Path) -> None:
    assert read_trace(written(tmp_path, RUBICK)).mean_steps("vit") == 37239
    assert read_trace(written(tmp_path, SIA)).mean_steps("bert") is None


BAD = {
    "empty file": ("", "an empty file"),
    "header only": ("name,time,application\n", "no rows"),
    "missing column": ("name,time\na,1\n", "no column 'application'"),
    "no arrival column": ("name,application\na,bert\n", "no column of arrival times"),
    "column twice": ("name,time,time,application\na,1,1,bert\n", "column 'time' twice"),
    "no number": (SIA.replace("10.5", "soon"), r"line 2, column time: got 'soon'"),
    "negative": (SIA.replace("10.5", "-1"), r"line 2, column time: got '-1'.*>= 0"),
    "not finite": (SIA.replace("10.5", "inf"), r"line 2, column time: got 'inf'.*finite"),
    "nan": (SIA.replace("10.5", "nan"), r"line 2, column time: got 'nan'.*finite"),
    "half a GPU": (SIA.replace(",12,", ",1.5,"), r"line 2, column num_replicas.*whole number >= 1"),
    "no GPU": (SIA.replace(",12,", ",0,"), r"line 2, column num_replicas.*>= 1"),
    "no application": (SIA.replace("bert", " "), r"line 2, column application.*non-empty"),
    "ragged row": (SIA + "c-2,9\n", r"line 4: got '2 cells'; expected 5"),
    "same name": (SIA.replace("b-1", "a-0"), r"line 3, column name.*line 2 has it too"),
    "odd flag": (RUBICK.replace(",64,1", ",64,maybe"), r"line 3, column is_sla: got 'maybe'"),
    "open quote": (SIA + '"c-2,9,bert,1,1\n', r"line 4|not CSV"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_bad_trace_is_one_error_that_names_the_place(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_trace(written(tmp_path, text))
    assert "trace.csv" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_or_binary_trace_is_a_file_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "junk.csv").write_bytes(b"\xff\xfe\x00" * 100)
    with pytest.raises(FileError, match="not UTF-8"):
        read_trace(tmp_path / "junk.csv")


def test_a_cell_of_megabytes_is_a_file_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="not CSV"):
        read_trace(written(tmp_path, SIA + "c-2," + "9" * 1_000_000 + ",bert,1,1\n"))


def test_newtrace_and_rubick_have_the_jobs_that_the_paper_counts(shared_data: Path) -> None:
    newtrace = read_trace(shared_data / "sia" / "workloads" / "newtrace" / "workload-1.csv")
    rubick = read_trace(shared_data / "rubick" / "workloads" / "workload-base.csv")
    assert newtrace.counts() == {
        "cifar10": 484,
        "deepspeech2": 226,
        "bert": 208,
        "yolov3": 36,
        "imagenet": 6,
    }
    assert (len(rubick.jobs), rubick.span_s) == (406, 47550)
    pollux = read_trace(shared_data / "pollux" / "workloads" / "workload-1.csv").counts()
    assert sum(pollux[app] for app in ("cifar10", "deepspeech2", "bert")) == 85
