"""What users would ask for, held against the workloads that the authors of Pollux drew."""

from pathlib import Path

import numpy as np
import pytest

from boa.catalogue import known_figures, read_trace
from boa.catalogue.asked_sizes import AskedSize, asked_sizes
from boa.catalogue.measured_profiles import AdaptiveProfile, Profiles, fitted_truth, read_truth
from boa.goodput.efficiency import Convergence
from boa.goodput.measured import FittedTimes
from boa.goodput.throughput import Throughput
from boa.goodput.tuning import Limits

SIZES = (8, 16, 32, 64, 128)


def model(*, network_s: float, iterations: float = 1000.0, widest: int = 64) -> AdaptiveProfile:
    """A second per eight samples, and so much per synchronisation; the noise never hurts."""
    constants = (0.0, 0.125, network_s, 0.0, network_s, 0.0, 1.0)
    nothing, noise = np.zeros((1, len(SIZES))), np.ones((1, len(SIZES)))
    return AdaptiveProfile(
        convergence=Convergence(SIZES, np.array([iterations]), nothing, noise),
        timings={"T4": FittedTimes(Throughput.of(constants))},
        limits={"T4": Limits(base_batch=8, max_batch=128, min_local=4, max_local=16)},
        measured_to={"T4": widest},
    )


def asked(profile: AdaptiveProfile) -> list[tuple[int, int]]:
    return [(size.gpus, size.batch_size) for size in asked_sizes("mine", profile, "T4", 4)]


def test_widths_are_those_that_are_half_to_four_fifths_as_efficient() -> None:
    """At the largest batch, k GPUs take 16/k + 1.6 s where one takes 16: 1/(1 + k/10)."""
    assert asked(model(network_s=1.6)) == [(4, 128), (6, 128), (8, 128)]


def test_a_model_that_scales_badly_is_asked_for_on_one_gpu() -> None:
    assert asked(model(network_s=200.0)) == [(1, 8)]


def test_nobody_asks_for_more_than_half_a_day() -> None:
    assert asked(model(network_s=1.6, iterations=128_000.0)) == [(6, 128), (8, 128)]


def test_nobody_asks_for_more_than_was_measured() -> None:
    assert asked(model(network_s=1.6, widest=5)) == [(4, 128)]


def test_what_the_authors_train_in_one_way_only_is_asked_for_in_that_way() -> None:
    assert asked_sizes("ncf", model(network_s=1.6), "T4", 4) == (AskedSize(1, 32768),)


def asked_by_application(known: Profiles) -> dict[str, set[tuple[int, int]]]:
    found = {}
    for name, profile in known.applications.items():
        assert isinstance(profile, AdaptiveProfile)
        sizes = asked_sizes(name, profile, "T4", known.gpus_per_node["T4"])
        found[name] = {(size.gpus, size.batch_size) for size in sizes}
    return found


def test_by_the_measured_profiles_it_is_all_that_pollux_workloads_have_and_nothing_else(
    shared_data: Path,
) -> None:
    drawn: dict[str, set[tuple[int, int]]] = {}
    for path in sorted((shared_data / "pollux" / "workloads").glob("*.csv")):
        for job in read_trace(path).jobs:
            assert job.gpus is not None
            assert job.batch_size is not None
            drawn.setdefault(job.application, set()).add((job.gpus, job.batch_size))
    measured = read_truth(shared_data / "pollux" / "traces", drawn)
    assert asked_by_application(measured) == drawn


@pytest.mark.parametrize("application", ["cifar10", "deepspeech2", "bert", "yolov3", "imagenet"])
def test_by_the_catalogue_it_is_nearly_the_same(application: str) -> None:
    fitted = asked_by_application(fitted_truth(known_figures()))[application]
    widths = {
        "cifar10": {6, 8, 12},
        "deepspeech2": {6, 8, 12},
        "bert": {6, 8, 12, 16},
        "yolov3": {4},
        "imagenet": {24, 32, 48},
    }
    assert {gpus for gpus, _ in fitted} == widths[application]
