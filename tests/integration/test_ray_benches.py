"""How bench/ray_autoscaler.py counts: the same rules for whoever ran the jobs."""

from pathlib import Path

import pytest

from _ray_stream import SCALES, Ran, careful, most_at_once, row, stream
from _rays import Launched

SPEED = 30.0


def launched(asked_at: float, terminated_at: float) -> Launched:
    return Launched(
        node=str(asked_at),
        kind="T4",
        asked_at=asked_at,
        up_at=asked_at + 4,
        terminated_at=terminated_at,
    )


def test_rented_is_from_the_launch_to_the_termination_and_idle_is_what_no_job_held() -> None:
    nodes = [launched(0, 120), launched(60, 180)]  # of the wall: an hour of job time each
    ran = [
        Ran(submitted_at=0, ended_at=60, gpu_s=240),
        Ran(submitted_at=10, ended_at=110, gpu_s=240),
    ]
    found = row(nodes, ran, speed=SPEED, gpus=4, price=2.0)
    assert found["gpu_h_rented"] == 8
    assert found["gpu_h_used"] == 4
    assert found["idle_share"] == 0.5
    assert found["usd"] == 16
    assert found["mean_jct_min"] == 40
    assert found["launch_min"] == 2
    assert found["most_nodes"] == 2


def test_a_node_that_went_before_another_came_is_not_counted_with_it() -> None:
    assert most_at_once([launched(0, 10), launched(10, 20)]) == 1
    assert most_at_once([launched(0, 10), launched(10, 20), launched(15, 30)]) == 2


def test_the_same_seed_gives_the_same_jobs_and_another_one_others(tmp_path: Path) -> None:
    one, same, other = (stream(15, 3600, seed, tmp_path) for seed in (1, 1, 2))
    assert one.jobs == same.jobs
    assert one.jobs != other.jobs
    assert one.per_hour() == pytest.approx(dict.fromkeys(SCALES, 3))
    assert one.jobs[0][0] == 0


def test_a_careful_user_takes_fewer_gpus_where_more_would_idle(tmp_path: Path) -> None:
    found = stream(5, 3600, 1, tmp_path)
    assert {name: careful(profile) for name, profile in found.profiles.items()} == {
        "resnet18": 4,
        "bert": 4,
        "deepspeech2": 4,
        "yolov3": 2,
        "neumf": 2,
    }
