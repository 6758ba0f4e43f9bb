"""Workload files: written so that they read back, and read as a person means them."""

import copy
from pathlib import Path
from typing import Any

import pytest

import boa
from boa.model import Amdahl, Epoch, GpuType, JobClass, Workload
from documents import WORKLOAD

ODD = ["no", "null", "1080", "2024-01-01", "- x", "*x", '"q', "a: b", "a # b", "1e3", "é", "~"]


@pytest.mark.parametrize("name", ODD)
def test_a_written_workload_reads_back_whatever_its_names(name: str, tmp_path: Path) -> None:
    epoch = Epoch(work=10.0, speedups={name: Amdahl(0.5)})
    job = JobClass(name=name, arrivals_per_hour=1.0, epochs=(epoch,), min_gpus={name: 2})
    workload = Workload(gpu_types={name: GpuType(name=name)}, classes=(job,))
    path = tmp_path / "workload.yaml"
    path.write_text(boa.dump_workload(workload), encoding="utf-8")
    assert boa.load_workload(path) == workload


@pytest.mark.parametrize("text", ["1e3", "1E3", "1.0e3", "1.e+3", "+1e3", "1000", "1_000"])
@pytest.mark.parametrize("anchor", ["", "&x "])
def test_numbers_may_be_written_in_any_common_form(text: str, anchor: str, tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(
        f"version: 1\ngpu_types: {{T4: {{price: {anchor}{text}}}}}\nclasses: [{{name: a, "
        "arrivals_per_hour: 1, epochs: [{work_s: 1, speedup: {T4: {amdahl: 1}}}]}]\n"
    )
    assert boa.load_workload(path).gpu_types["T4"].price == 1000.0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("w.yaml", "version: 1\ngpu_types: {T4: {price: 1, price: 2}}\nclasses: []\n"),
        ("w.yaml", "version: &x 1\ngpu_types: {T4: {price: 1, price: 2}}\nclasses: []\n"),
        ("w.json", '{"version": 1, "gpu_types": {"T4": {"price": 1, "price": 2}}, "classes": []}'),
    ],
)
def test_a_key_that_occurs_twice_is_refused(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(boa.InputError, match="'price' occurs twice"):
        boa.load_workload(path)


@pytest.mark.parametrize("value", ["false", "0", "''", "[]"])
def test_a_gpu_type_is_a_mapping_or_nothing(value: str, tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    epoch = "{work_s: 1, speedup: {T4: {power: 1}}}"
    body = f"classes: [{{name: a, arrivals_per_hour: 1, epochs: [{epoch}]}}]"
    path.write_text(f"version: 1\ngpu_types: {{T4: {value}}}\n{body}\n")
    with pytest.raises(boa.InputError, match=r"gpu_types\.T4"):
        boa.load_workload(path)
    path.write_text(f"version: 1\ngpu_types: {{T4: }}\n{body}\n")
    assert boa.load_workload(path).gpu_types["T4"].price == 1.0


@pytest.mark.parametrize("width", ["9" * 5000, "70000", "0", "٣", "1\n", "one"])
def test_a_width_that_is_none_is_refused_however_long(width: str) -> None:
    document: Any = copy.deepcopy(WORKLOAD)
    document["classes"][0]["epochs"][0]["speedup"]["T4"]["table"][width] = 1.0
    with pytest.raises(boa.InputError, match=r"speedup\.T4\.table\..*a whole number 1 to 65536"):
        boa.parse_workload(document)
