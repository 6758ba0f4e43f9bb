"""Synthetic traces and Parquet: what is drawn, what is written, what comes back."""

import csv
import sys
import tracemalloc
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from boa.catalogue import read_trace
from boa.catalogue.arrivals import (
    NEWTRACE_MIX,
    TraceSpec,
    spec_like,
    spec_of_mix,
    synthetic_jobs,
    synthetic_trace,
)
from boa.catalogue.traces import BATCH, OWN_COLUMNS, dump_trace, write_trace
from boa.errors import FileError, InputError
from boa.model.trace import Trace, TraceJob

FULL = TraceJob(
    name='a,b "c" 漢',
    arrival_s=0.1 + 0.2,
    application="bert",
    gpus=4,
    batch_size=96,
    steps=2**40,
    plan="zero-dp",
    guaranteed=True,
    duration_s=1e-9,
    priority="urgent",
)
BARE = TraceJob(name="z", arrival_s=1e7 / 3, application="gpt2")


def test_jobs_are_numbered_in_order_of_arrival() -> None:
    jobs = synthetic_trace(spec_of_mix(jobs=500, cv2=5), seed=1).jobs
    times = [job.arrival_s for job in jobs]
    assert times == sorted(times)
    assert [job.name for job in jobs] == [f"{job.application}-{n}" for n, job in enumerate(jobs)]


def test_the_same_seed_gives_the_same_trace_and_another_another() -> None:
    spec = spec_of_mix(jobs=300, cv2=2.65)
    assert synthetic_trace(spec, seed=4) == synthetic_trace(spec, seed=4)
    assert synthetic_trace(spec, seed=4) != synthetic_trace(spec, seed=5)


@pytest.mark.parametrize("cv2", [1, 2.65])
def test_a_longer_trace_begins_with_the_shorter_one(cv2: float) -> None:
    longer = synthetic_trace(spec_of_mix(jobs=40_000, cv2=cv2), seed=2).jobs
    assert synthetic_trace(spec_of_mix(jobs=20_000, cv2=cv2), seed=2).jobs == longer[:20_000]
    hours = longer[1000].arrival_s / 3600
    assert synthetic_trace(spec_of_mix(hours=hours, cv2=cv2), seed=2).jobs == longer[:1000]


def test_without_a_mix_it_is_that_of_newtrace() -> None:
    jobs = Counter(job.application for job in synthetic_jobs(spec_of_mix(jobs=96_000), seed=0))
    for application, count in NEWTRACE_MIX.items():
        assert jobs[application] == pytest.approx(100 * count, abs=6 * (100 * count) ** 0.5)


def test_the_mix_that_is_built_in_is_newtrace_s(shared_data: Path) -> None:
    newtrace = read_trace(shared_data / "sia" / "workloads" / "newtrace" / "workload-1.csv")
    assert newtrace.counts() == NEWTRACE_MIX
    assert newtrace.counts()["yolov3"] / len(newtrace.jobs) == 0.0375  # the paper prints 4.75 %


def test_a_trace_like_another_draws_its_jobs_whole() -> None:
    other = Trace((FULL, BARE))
    jobs = synthetic_trace(spec_like(other, jobs=1000), seed=0).jobs
    kinds = Counter(job.again("", 0.0) for job in jobs)
    assert set(kinds) == {FULL.again("", 0.0), BARE.again("", 0.0)}
    assert min(kinds.values()) > 400
    assert {job.line for job in jobs} == {None}


def test_a_trace_like_another_has_its_rate_and_length_unless_given() -> None:
    other = Trace(tuple(BARE.again(f"j-{n}", 60.0 * n) for n in range(1, 2001)))
    same = spec_like(other)
    assert same.jobs == 2000
    assert same.arrivals_per_hour == pytest.approx(60)
    other_rate = spec_like(other, arrivals_per_hour=7, hours=3)
    assert (other_rate.jobs, other_rate.hours, other_rate.arrivals_per_hour) == (None, 3, 7)
    assert synthetic_trace(same, seed=0).span_s == pytest.approx(other.span_s, rel=0.1)


def test_memory_does_not_grow_with_the_trace() -> None:
    def peak(jobs: int) -> int:
        tracemalloc.start()
        for _ in synthetic_jobs(spec_of_mix(jobs=jobs, cv2=10), seed=0):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(60_000) < peak(20_000) + 500_000 < 10_000_000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cv2": 0.99}, "cv2: got 0.99; expected a number from 1"),
        ({"cv2": float("nan")}, "cv2"),
        ({"cv2": 1e5}, "cv2"),
        ({"arrivals_per_hour": 0}, "arrivals_per_hour"),
        ({"arrivals_per_hour": float("inf")}, "arrivals_per_hour"),
        ({"jobs": 0}, "jobs: got 0"),
        ({"jobs": None}, "either a number of jobs or of hours"),
        ({"hours": 3}, "either a number of jobs or of hours"),
        ({"jobs": None, "hours": -1}, "hours: got -1"),
        ({"mix": {}}, "at least one job"),
        ({"mix": {"bert": 0}}, "mix.bert: got 0"),
        ({"mix": {" ": 1}}, "name"),
    ],
)
def test_a_trace_that_cannot_be_drawn_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        spec_of_mix(**{"jobs": 10, **given})


def test_c2_is_unknown_where_there_is_nothing_to_compare() -> None:
    for times in ([], [1.0], [1.0, 2.0], [5.0, 5.0, 5.0]):
        trace = Trace(tuple(BARE.again(f"j-{n}", t) for n, t in enumerate(times)))
        assert trace.interarrival_cv2() is None
    steady = Trace(tuple(BARE.again(f"j-{n}", 3.0 * n) for n in range(9)))
    assert steady.interarrival_cv2() == 0


def test_the_busiest_hour_is_wherever_it_lies() -> None:
    times = [0, 3500, 3590, 3610, 7000, 7300, 20_000]
    trace = Trace(tuple(BARE.again(f"j-{n}", float(t)) for n, t in enumerate(times)))
    assert trace.peak_jobs(3600) == 4  # from 3,500 on, but 7,100 is no longer in it
    assert trace.peak_jobs(1) == 1
    assert Trace(()).peak_jobs(3600) == 0


def test_the_mix_counts_gpus_only_where_they_are_known() -> None:
    jobs = (FULL, FULL.again("b", 1.0), BARE)
    (most, least) = Trace(jobs).mix()
    assert (most.name, most.jobs, most.share, most.mean_gpus) == ("bert", 2, 2 / 3, 4.0)
    assert least.mean_gpus is None


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_written_is_read_back_to_the_last_digit(tmp_path: Path, suffix: str) -> None:
    path, trace = tmp_path / f"t.{suffix}", Trace((FULL, BARE))
    assert write_trace(trace.jobs, path) == 2
    assert read_trace(path) == trace
    drawn = synthetic_trace(spec_like(trace, jobs=100), seed=0)
    write_trace(iter(drawn.jobs), path)
    assert read_trace(path) == drawn
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_csv_in_a_file_is_csv_as_text(tmp_path: Path) -> None:
    write_trace((FULL, BARE), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == dump_trace(Trace((FULL, BARE)))


def test_parquet_files_have_typed_columns_that_others_can_read(tmp_path: Path) -> None:
    write_trace((FULL, BARE), tmp_path / "t.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert tuple(table.column_names) == OWN_COLUMNS
    assert table["gpus"].to_pylist() == [4, None]
    assert table["guaranteed"].to_pylist() == [True, False]


def test_parquet_is_written_batch_by_batch(tmp_path: Path) -> None:
    jobs = synthetic_jobs(spec_of_mix(jobs=BATCH + 10), seed=0)
    assert write_trace(jobs, tmp_path / "t.parquet") == BATCH + 10
    assert pyarrow.parquet.ParquetFile(tmp_path / "t.parquet").num_row_groups == 2


def test_other_people_s_columns_are_read_from_parquet_too(tmp_path: Path) -> None:
    columns = {
        "name": ["a", "b"],
        "time": pyarrow.array([7, 3]),
        "application": ["bert", "cifar10"],
        "num_replicas": pyarrow.array([2.0, None]),
        "batch_size": [96, 128],
        "comment": [b"\xff", None],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "sia.parquet")
    jobs = read_trace(tmp_path / "sia.parquet").jobs
    assert [(job.name, job.arrival_s, job.gpus) for job in jobs] == [("b", 3, None), ("a", 7, 2)]


GOOD: dict[str, Any] = {
    "name": ["a", "b"],
    "arrival_s": [1.0, 2.0],
    "application": ["bert", "bert"],
}
BAD = {
    "no column": ({k: v for k, v in GOOD.items() if k != "application"}, "no column 'application'"),
    "no arrivals": ({k: v for k, v in GOOD.items() if k != "arrival_s"}, "no column of arrival"),
    "no rows": ({k: pyarrow.array([], "string") for k in GOOD}, "0 rows"),
    "nobody": ({**GOOD, "name": ["a", None]}, "row 2, column name"),
    "twice": ({**GOOD, "name": ["a", "a"]}, "row 2, column name.*row 1 has it too"),
    "never": ({**GOOD, "arrival_s": [1.0, float("nan")]}, "row 2, column arrival_s: got 'nan'"),
    "before": ({**GOOD, "arrival_s": [-1.0, 2.0]}, "row 1, column arrival_s"),
    "a list": ({**GOOD, "arrival_s": [[1.0], [2.0]]}, "row 1, column arrival_s"),
    "half": ({**GOOD, "gpus": [1.5, 2]}, "row 1, column gpus.*whole number"),
}


@pytest.mark.parametrize(("columns", "message"), BAD.values(), ids=BAD)
def test_a_bad_parquet_file_is_one_error_that_names_the_place(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "bad.parquet")
    with pytest.raises(InputError, match=message) as error:
        read_trace(tmp_path / "bad.parquet")
    assert "bad.parquet" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_column_twice_is_refused_in_parquet_too(tmp_path: Path) -> None:
    column = pyarrow.array(["a"])
    names = ["name", "name", "application", "time"]
    table = pyarrow.Table.from_arrays([column, column, column, pyarrow.array([1.0])], names)
    pyarrow.parquet.write_table(table, tmp_path / "bad.parquet")
    with pytest.raises(FileError, match="column 'name' twice"):
        read_trace(tmp_path / "bad.parquet")


def test_a_damaged_parquet_file_is_one_error_or_none(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    write_trace(synthetic_jobs(spec_of_mix(jobs=20), seed=0), path)
    whole, random = path.read_bytes(), np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(whole)
        for at in random.integers(0, len(whole), 3):
            damaged[at] = int(random.integers(256))
        path.write_bytes(bytes(damaged[: random.integers(len(whole) // 2, len(whole) + 1)]))
        with suppress(InputError):
            read_trace(path)


def test_a_missing_parquet_file_or_a_folder_is_a_file_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        read_trace(tmp_path / "none.parquet")
    (tmp_path / "d.parquet").mkdir()
    with pytest.raises(FileError, match="directory"):
        read_trace(tmp_path / "d.parquet")


def test_without_pyarrow_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for path in (tmp_path / "t.parquet", tmp_path / "none.parquet"):
        with pytest.raises(FileError, match=r"pip install 'boa-constrictor\[parquet\]'"):
            write_trace((BARE,), path)
        with pytest.raises(FileError, match=r"pip install 'boa-constrictor\[parquet\]'"):
            read_trace(path)
    assert list(tmp_path.iterdir()) == []
    write_trace((BARE,), tmp_path / "t.csv")


def test_what_fails_half_way_leaves_the_old_file_whole(tmp_path: Path) -> None:
    def broken() -> Any:
        yield BARE
        raise RuntimeError("the rest is missing")

    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        path.write_text("old")
        with pytest.raises(RuntimeError):
            write_trace(broken(), path)
        assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_numbers_that_parquet_cannot_hold_are_refused(tmp_path: Path) -> None:
    huge = TraceJob(name="a", arrival_s=0, application="bert", steps=10**30)
    with pytest.raises(FileError, match="64 bits"):
        write_trace((huge,), tmp_path / "t.parquet")
    write_trace((huge,), tmp_path / "t.csv")


def test_a_trace_is_written_only_to_what_it_can_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.csv or \.parquet"):
        write_trace((BARE,), tmp_path / "t.txt")
    with pytest.raises(FileError, match="No such file"):
        write_trace((BARE,), tmp_path / "none" / "t.csv")


def test_a_job_again_is_the_same_job_elsewhere() -> None:
    again = FULL.again("b", 7.0)
    assert again == TraceJob(
        name="b",
        arrival_s=7.0,
        **{c: getattr(FULL, c) for c in OWN_COLUMNS if c not in ("name", "arrival_s")},
    )
    assert hash(again) == hash(FULL.again("b", 7.0))


def test_our_columns_are_the_fields_of_a_job() -> None:
    header = next(csv.reader(dump_trace(Trace((BARE,))).splitlines()))
    assert [*header, "line"] == list(TraceJob.__slots__)


def test_a_spec_needs_something_to_draw_from() -> None:
    with pytest.raises(InputError, match="at least one job"):
        TraceSpec(pool=(), jobs=1)
