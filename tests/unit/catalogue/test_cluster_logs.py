"""Microsoft's ITP logs: told by their header, made elastic by the recipe of Pollux and Sia."""

from collections import Counter
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from boa.catalogue import dump_trace, known_figures, read_trace, workload_from_files
from boa.catalogue.reading import Reading
from boa.errors import FileError, InputError
from boa.model.trace import Drawn, Trace

HEADER = "job_id,submission_time,duration,num_gpu\n"
HOUR = 3600
ITP = HEADER + "a,1000,600,1\nb,1100,7200,4\nc,4600,36000,8\nd,4700,180000,16\n"
"""A sixth of a GPU-hour, 8, 80, 800."""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "cluster.csv"
    path.write_text(text)
    return path


def many(tmp_path: Path, duration: int, gpus: int, jobs: int = 2000) -> Path:
    rows = (f"j-{n},{100 + 60 * n},{duration},{gpus}\n" for n in range(jobs))
    return written(tmp_path, HEADER + "".join(rows))


def test_a_job_s_gpu_hours_say_which_model_it_becomes(tmp_path: Path) -> None:
    jobs = read_trace(written(tmp_path, ITP)).jobs
    assert [job.name for job in jobs] == ["a", "b", "c", "d"]
    assert [job.line for job in jobs] == [2, 3, 4, 5]
    models = [job.application for job in jobs]
    assert models[0] == "cifar10"
    assert models[1] in ("deepspeech2", "bert")
    assert models[2:] == ["yolov3", "imagenet"]


@pytest.mark.parametrize(
    ("gpu_hours", "models"),
    [
        (0.99, {"cifar10"}),
        (1, {"deepspeech2", "bert"}),
        (9.99, {"deepspeech2", "bert"}),
        (10, {"yolov3"}),
        (99.9, {"yolov3"}),
        (100, {"imagenet"}),
        (1000, {"imagenet"}),
    ],
)
def test_a_class_begins_at_its_bound(tmp_path: Path, gpu_hours: float, models: set[str]) -> None:
    path = many(tmp_path, round(gpu_hours * HOUR), 1, jobs=40)
    assert set(read_trace(path).counts()) == models


def test_arrivals_count_from_the_first_submission(tmp_path: Path) -> None:
    assert [job.arrival_s for job in read_trace(written(tmp_path, ITP)).jobs] == [
        0.0,
        100.0,
        3600.0,
        3700.0,
    ]


def test_jobs_that_are_very_short_or_very_large_are_left_out_and_counted(tmp_path: Path) -> None:
    more = "short,0,59,64\nlong,5000,360001,10\nleast,5000,60,1\nmost,5000,360000,10\n"
    trace = read_trace(written(tmp_path, ITP + more))
    assert {job.name for job in trace.jobs} == {"a", "b", "c", "d", "least", "most"}
    assert trace.drawn == Drawn(recipe="sia", seed=0, left_out=2)
    assert trace.jobs[0].arrival_s == 1000, "a job that is left out was submitted all the same"


def test_a_log_of_which_nothing_is_left_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cluster.csv: 1 jobs, all under 60 s or over 1,000"):
        read_trace(written(tmp_path, HEADER + "a,0,10,1\n"))


def test_the_same_seed_gives_the_same_trace_and_another_seed_another(tmp_path: Path) -> None:
    path = many(tmp_path, 2 * HOUR, 2)
    first = read_trace(path)
    assert read_trace(path, Reading(seed=0)) == first
    other = read_trace(path, Reading(seed=1))
    assert other != first
    assert [job.arrival_s for job in other.jobs] == [job.arrival_s for job in first.jobs]


def test_the_coin_is_fair_and_all_that_users_ask_for_is_as_likely(tmp_path: Path) -> None:
    jobs = read_trace(many(tmp_path, 2 * HOUR, 2)).jobs
    of_bert = [job for job in jobs if job.application == "bert"]
    assert len(of_bert) == pytest.approx(1000, abs=100)
    asked = Counter((job.gpus, job.batch_size) for job in of_bert)
    assert set(asked) == {(6, 384), (8, 384), (12, 384), (16, 384)}
    assert all(count == pytest.approx(250, abs=60) for count in asked.values())


def test_a_stretch_has_the_jobs_that_the_whole_trace_has_there(tmp_path: Path) -> None:
    path = many(tmp_path, 2 * HOUR, 2)
    part = read_trace(path, Reading(from_h=10, hours=5))
    assert part.jobs == read_trace(path).between(10 * HOUR, 15 * HOUR).jobs
    assert len(part.jobs) == 300
    assert part.drawn is not None


def test_half_of_the_small_jobs_are_neumf_by_pollux_recipe_alone(tmp_path: Path) -> None:
    path = many(tmp_path, HOUR // 2, 1)
    assert set(read_trace(path).counts()) == {"cifar10"}
    counts = read_trace(path, Reading(recipe="pollux")).counts()
    assert set(counts) == {"cifar10", "ncf"}
    assert counts["ncf"] == pytest.approx(1000, abs=100)
    assert set(counts) < set(known_figures().available)


def test_an_elastic_trace_survives_being_written_in_our_own_format(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, ITP))
    assert read_trace(written(tmp_path, dump_trace(trace))) == trace


def test_columns_may_come_in_any_order_and_in_parquet(tmp_path: Path) -> None:
    expected = read_trace(written(tmp_path, ITP))
    columns = {
        "num_gpu": [1, 4, 8, 16],
        "job_id": ["a", "b", "c", "d"],
        "duration": [600.0, 7200.0, 36000.0, 180000.0],
        "submission_time": [1000, 1100, 4600, 4700],
        "user": ["x"] * 4,
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    assert read_trace(tmp_path / "t.parquet") == expected


BAD = {
    "no GPUs": ("job_id,submission_time,duration\na,1,1\n", "no column 'num_gpu'"),
    "no duration": ("job_id,submission_time,num_gpu\na,1,1\n", "no column 'duration'"),
    "no id": ("submission_time,duration,num_gpu\n1,1,1\n", "no column 'job_id'"),
    "no number": (ITP.replace("7200", "long"), r"line 3, column duration: got 'long'.*number >= 0"),
    "negative": (ITP.replace("1100", "-1"), r"line 3, column submission_time: got '-1'.*>= 0"),
    "nan": (ITP.replace("1100", "nan"), r"line 3, column submission_time: got 'nan'.*finite"),
    "half a GPU": (ITP.replace(",4\n", ",1.5\n"), r"line 3, column num_gpu.*whole number >= 1"),
    "no GPU": (ITP.replace(",4\n", ",0\n"), r"line 3, column num_gpu: got '0'.*>= 1"),
    "nobody": (ITP.replace("b,", ","), r"line 3, column job_id.*non-empty"),
    "same id": (ITP.replace("c,", "a,"), r"line 4, column job_id: got 'a'.*line 2 has it too"),
    "ragged": (ITP + "e,1\n", r"line 6: got '2 cells'; expected 4"),
    "header only": (HEADER, "no rows"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_a_bad_log_is_one_error_that_names_the_place(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_trace(written(tmp_path, text))
    assert "cluster.csv" in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


def test_profiles_without_these_models_are_an_error_that_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "iteration_times").mkdir()
    rubick = "exec_plan,placement,iter_time\nzero-dp,1,0.5\n"
    (tmp_path / "iteration_times" / "vit.csv").write_text(rubick)
    with pytest.raises(FileError, match=r"no profile of cifar10, which jobs of the trace become"):
        read_trace(written(tmp_path, ITP), Reading(profiles=tmp_path))


def test_a_workload_says_that_its_models_were_drawn_and_how_to_do_it_again(tmp_path: Path) -> None:
    reading = Reading(hours=1.01, seed=7)
    made = workload_from_files(written(tmp_path, ITP), None, ["T4"], reading=reading)
    assert any("does not tell their models" in line for line in made.notes)
    assert any(line.endswith("cluster.csv --gpus T4 --hours 1.01 --seed 7") for line in made.notes)


CLUSTERS = {"01": 1594, "02": 5760, "03": 2996, "04": 15_622, "05": 3629, "06": 2386, "07": 12_670}
"""Jobs of 60 s or more and at most 1,000 GPU-hours."""


@pytest.fixture(scope="module")
def cluster07(shared_data: Path) -> Trace:
    return read_trace(shared_data / "itp" / "cluster07.csv")


def test_a_real_cluster_has_all_its_jobs_but_the_largest(cluster07: Trace) -> None:
    assert len(cluster07.jobs) == CLUSTERS["07"]
    assert cluster07.drawn == Drawn(recipe="sia", seed=0, left_out=29)


def test_a_real_cluster_s_shares_are_those_of_its_gpu_hours(cluster07: Trace) -> None:
    counts = cluster07.counts()
    assert (counts["cifar10"], counts["yolov3"], counts["imagenet"]) == (2788, 1291, 880)
    assert counts["deepspeech2"] + counts["bert"] == 7711
    assert counts["bert"] == pytest.approx(7711 / 2, rel=0.05)
    assert sum(portion.share for portion in cluster07.mix()) == pytest.approx(1)


def test_a_real_cluster_s_models_do_not_depend_on_the_profiles(
    cluster07: Trace, shared_data: Path
) -> None:
    profiles = shared_data / "sia" / "traces"
    other = read_trace(shared_data / "itp" / "cluster07.csv", Reading(profiles=profiles))
    assert other.counts() == cluster07.counts()
    assert other != cluster07, "but what users ask for does"


@pytest.mark.parametrize("cluster", ["01", "05", "06", "07"])
def test_real_clusters_are_far_burstier_than_newtrace(shared_data: Path, cluster: str) -> None:
    trace = read_trace(shared_data / "itp" / f"cluster{cluster}.csv")
    assert len(trace.jobs) == CLUSTERS[cluster]
    burstiness = trace.interarrival_cv2()
    assert burstiness is not None
    assert 10.9 < burstiness < 162
