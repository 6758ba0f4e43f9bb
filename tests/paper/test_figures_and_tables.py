"""The paper's figure on speedups and its tables of workloads and prices, from our own figures."""

from pathlib import Path

import numpy as np
import pytest

import boa
from boa.model import JobClass, Workload
from boa.model.speedup import Floats

WIDTHS = np.arange(1.0, 65.0)


@pytest.fixture(scope="module")
def newtrace(examples: Path) -> Workload:
    return boa.load_workload(examples / "newtrace-t4.yaml")


def job_class(workload: Workload, name: str) -> JobClass:
    return next(c for c in workload.classes if c.name == name)


def speedup(workload: Workload, epoch: int) -> Floats:
    return job_class(workload, "resnet18").epochs[epoch].speedups["T4"].rates(WIDTHS)


def test_figure_2a_cifar10_speedups_are_sublinear_and_change_during_training(
    newtrace: Workload,
) -> None:
    early, late = speedup(newtrace, 1), speedup(newtrace, -1)
    for curve in (early, late):
        assert (curve <= WIDTHS * (1 + 1e-9)).all()
        assert curve[63] < 0.5 * 64
    assert (late[3:] > early[3:]).all()
    assert late.max() > 1.2 * early.max()


def test_figure_2b_wider_training_costs_more_gpu_hours(newtrace: Workload) -> None:
    """k / s(k), the GPU-hours per unit of work, grows with every doubling of the width."""
    for epoch in (1, 50, -1):
        cost = WIDTHS / speedup(newtrace, epoch)
        doubled = cost[[0, 1, 3, 7, 15, 31, 63]]
        assert (np.diff(doubled) > 0).all()
        assert doubled[-1] > 2 * doubled[0]


def test_table_1_the_mix_of_newtrace(newtrace: Workload) -> None:
    """As printed, but for YOLOv3: the paper says 4.75 %, the trace has 36 of 960 jobs."""
    share = {c.name: c.arrivals_per_hour / newtrace.arrivals_per_hour for c in newtrace.classes}
    printed = {"resnet18": 50.42, "deepspeech2": 23.54, "bert": 21.67, "resnet50": 0.62}
    for name, percent in printed.items():
        assert 100 * share[name] == pytest.approx(percent, abs=0.01)
    assert 100 * share["yolov3"] == pytest.approx(3.75, abs=0.01)


def test_table_1_the_mix_of_rubick(examples: Path) -> None:
    rubick = boa.load_workload(examples / "rubick-a800.yaml")
    share = {c.name: c.arrivals_per_hour / rubick.arrivals_per_hour for c in rubick.classes}
    printed = {
        "gpt2": 17.00,
        "bert": 15.76,
        "t5": 15.27,
        "roberta": 14.29,
        "llama7": 13.30,
        "llama30": 12.56,
        "vit": 11.82,
    }
    assert {name: round(100 * part, 2) for name, part in share.items()} == pytest.approx(
        printed, abs=0.011
    )
    wide = {c.name for c in rubick.classes if c.min_on("A800") > 1}
    assert wide == {"llama7", "llama30"}


def test_the_appendix_s_prices(examples: Path) -> None:
    hetero = boa.load_workload(examples / "newtrace-hetero.yaml")
    prices = {name: gpu.price for name, gpu in hetero.gpu_types.items()}
    assert prices == {"T4": 1.088, "V100": 2.754, "A100": 3.400}
