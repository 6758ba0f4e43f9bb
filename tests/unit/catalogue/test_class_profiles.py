"""Workloads from a trace and from profiles of its classes."""

import json
from pathlib import Path

import pytest

from boa.catalogue import workload_from_files
from boa.errors import InputError

TRACE = "name,arrival_s,application\n" + "".join(
    f"job-{n},{n * 1800},{'bert' if n % 3 == 2 else 'cifar10'}\n" for n in range(7)
)


def profile(name: str, **fields: object) -> str:
    """On nodes of four T4: 1, 2, 3 and 4 times as fast on one node, 4.5 times on five GPUs."""
    one_node, across = [1.0, 2.0, 3.0, 4.0, 0.0], [0.0, 1.5, 2.5, 3.5, 4.5]
    rates = {"T4": {"one_node": [one_node], "across": [across]}}
    known = {"version": 1, "class": name, "rescale_s": 50, "work": [3600.0], "rates": rates}
    return json.dumps({**known, **fields})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trace.csv").write_text(TRACE)
    made = tmp_path / "profiles"
    made.mkdir()
    for name in ("resnet18", "bert"):
        (made / f"{name}.json").write_text(profile(name))
    (made / "boa.yaml").write_text("version: 1\n")
    return made


def test_rates_come_from_the_trace_and_speeds_from_the_profiles(folder: Path) -> None:
    made = workload_from_files(folder.parent / "trace.csv", folder, ["T4"])
    common, rare = made.classes
    assert [common.name, rare.name] == ["resnet18", "bert"]
    assert common.arrivals_per_hour == pytest.approx(2.5 * rare.arrivals_per_hour, rel=1e-4)
    (epoch,) = common.epochs
    assert (common.rescale_s, epoch.work) == (50, 3600)
    assert [epoch.speedups["T4"](width) for width in (1, 4, 5)] == [1.0, 4.0, 4.5]


def test_a_rescaling_time_that_is_given_replaces_the_profiles(folder: Path) -> None:
    made = workload_from_files(folder.parent / "trace.csv", folder, ["T4"], rescale=7)
    assert {each.rescale_s for each in made.classes} == {7}


def test_a_class_without_a_profile_is_named(folder: Path) -> None:
    (folder / "bert.json").unlink()
    with pytest.raises(InputError, match=r"profiles: got 'bert'.*resnet18"):
        workload_from_files(folder.parent / "trace.csv", folder, ["T4"])


def test_a_gpu_type_that_no_profile_has_is_named(folder: Path) -> None:
    with pytest.raises(InputError, match=r"profile of resnet18: got 'A100'.*T4"):
        workload_from_files(folder.parent / "trace.csv", folder, ["A100"])


def test_profiles_of_classes_take_no_calibration(folder: Path) -> None:
    with pytest.raises(InputError, match="slowdown: got 'sia'"):
        workload_from_files(folder.parent / "trace.csv", folder, ["T4"], slowdown="sia")
