"""The shipped examples and figures are what the public files give, to the last byte."""

from pathlib import Path
from typing import cast

import numpy as np
import pytest

import boa.catalogue
from boa.catalogue import known_figures, read_trace, workload_from_files, workload_from_trace
from boa.catalogue.figures import System
from boa.catalogue.rebuild import dump_figures, learned_document
from boa.formats.workload import dump_workload, load_workload
from boa.model import GpuType, JobClass, Table, Workload

NEWTRACE = "sia/workloads/newtrace/workload-1.csv"
RUBICK = "rubick/workloads/workload-base.csv"
EXAMPLES: dict[str, tuple[str, str, list[str], System]] = {
    "newtrace-t4": (NEWTRACE, "sia/traces", ["T4"], "sia"),
    "newtrace-hetero": (NEWTRACE, "sia/traces", ["T4", "V100", "A100"], "sia"),
    "rubick-a800": (RUBICK, "rubick", ["A800"], "rubick"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_public_files_give_the_example_byte_for_byte(
    shared_data: Path, examples: Path, name: str
) -> None:
    trace, profiles, gpus, _ = EXAMPLES[name]
    workload = workload_from_files(shared_data / trace, shared_data / profiles, gpus)
    assert dump_workload(workload) == (examples / f"{name}.yaml").read_text("utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_figures_of_the_catalogue_give_exactly_the_same_workload_without_profiles(
    shared_data: Path, examples: Path, name: str
) -> None:
    path, _, gpus, system = EXAMPLES[name]
    trace = read_trace(shared_data / path)
    shipped = load_workload(examples / f"{name}.yaml")
    assert workload_from_trace(trace, known_figures(system), gpus) == shipped
    assert workload_from_files(shared_data / path, None, gpus) == shipped


def test_the_shipped_figures_are_what_the_public_files_give(shared_data: Path) -> None:
    shipped = Path(boa.catalogue.__file__).with_name("figures.json").read_text("utf-8")
    assert dump_figures(learned_document(shared_data)) == shipped


def cheapest_per_hour(workload: Workload) -> float:
    """Σ λ_i × the least that a job of class i can cost on any one GPU type."""
    return sum(
        c.arrivals_per_hour / 3600 * min(cheapest_job(c, g) for g in workload.gpu_types.values())
        for c in workload.classes
    )


def cheapest_job(job_class: JobClass, gpu: GpuType) -> float:
    """A shortest path over (epoch, width), rescaling included: the solver's, written again."""
    curves = [cast(Table, epoch.speedups[gpu.name]) for epoch in job_class.epochs]
    widths = np.array(curves[0].widths, dtype=float)
    start = widths * job_class.rescale_s
    spent = start
    for j, (epoch, curve) in enumerate(zip(job_class.epochs, curves, strict=True)):
        before = np.minimum(spent, spent.min() + start) if j else spent
        spent = before + widths * epoch.work / curve.measured
    return float(gpu.price * spent.min())


@pytest.mark.parametrize(("name", "reference"), [("newtrace-t4", 94.8), ("newtrace-hetero", 71.9)])
def test_the_cheapest_budget_of_newtrace_agrees_with_the_prototype(
    examples: Path, name: str, reference: float
) -> None:
    assert cheapest_per_hour(load_workload(examples / f"{name}.yaml")) == pytest.approx(
        reference, rel=0.015
    )


def test_newtrace_has_five_classes_of_322_epochs_in_the_mix_of_the_paper(examples: Path) -> None:
    workload = load_workload(examples / "newtrace-hetero.yaml")
    assert {c.name: len(c.epochs) for c in workload.classes} == {
        "resnet18": 100,
        "deepspeech2": 80,
        "bert": 2,
        "yolov3": 50,
        "resnet50": 90,
    }
    shares = [100 * c.arrivals_per_hour / workload.arrivals_per_hour for c in workload.classes]
    # The paper prints 4.75 % for YOLOv3, but its column then adds up to 101 %: 36 of 960 are 3.75.
    assert shares == pytest.approx([50.42, 23.54, 21.67, 3.75, 0.62], abs=0.01)


def test_the_rubick_mix_is_that_of_the_paper(examples: Path) -> None:
    workload = load_workload(examples / "rubick-a800.yaml")
    shares = {c.name: c.arrivals_per_hour / workload.arrivals_per_hour for c in workload.classes}
    assert shares == pytest.approx(
        {
            "gpt2": 0.17,
            "bert": 0.1576,
            "t5": 0.1527,
            "roberta": 0.1429,
            "llama7": 0.1330,
            "llama30": 0.1256,
            "vit": 0.1182,
        },
        abs=1e-4,
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_stay_small_and_name_their_source(examples: Path, name: str) -> None:
    text = (examples / f"{name}.yaml").read_text("utf-8")
    assert len(text) < 600_000
    assert "artifact" in text.splitlines()[1]
    assert "Made by: boa workload from-trace" in text
