"""Slots, GPUs and folders that a service has where nothing is configured."""

from pathlib import Path

import pytest

from boa.formats.machine import short_name, slot_words
from boa.formats.service import load_config
from boa.model.service import ServiceConfig
from boa.model.workload import GpuType

pytestmark = pytest.mark.usefixtures("no_gpus")


def load() -> ServiceConfig:
    return load_config(None, {}, lambda model, gpu_types: None)


@pytest.mark.parametrize(
    ("cores", "per_node", "nodes"),
    [(1, 2, 1), (2, 2, 1), (4, 2, 2), (7, 2, 3), (8, 4, 2), (64, 4, 16)],
)
def test_without_anything_there_is_a_slot_for_every_core_at_a_budget_of_four(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, per_node: int, nodes: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(cores)))
    config = load()
    assert config.budget == 4.0
    assert config.gpu_types == {"slot": GpuType(name="slot", price=1.0, gpus_per_node=per_node)}
    assert config.max_nodes == {"slot": nodes}
    said = slot_words(config.gpu_types, config.max_nodes)
    assert said is not None
    assert said.startswith(f"no GPUs here: {per_node * nodes} slots stand for them")
    assert (", one for a core." in said) == (per_node * nodes == cores)
    assert config.data_dir == tmp_path / "home"
    assert config.db == f"sqlite:///{tmp_path}/home/boa.db"


def fake_gpus(programs: Path, script: str) -> None:
    program = programs / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_a_machine_with_gpus_is_one_node_of_them(no_gpus: Path) -> None:
    fake_gpus(no_gpus, "echo 'NVIDIA A100-SXM4-80GB'; echo 'NVIDIA A100-SXM4-80GB'; echo Tesla T4")
    config = load()
    assert config.gpu_types == {"A100": GpuType(name="A100", price=1.0, gpus_per_node=2)}
    assert config.max_nodes == {"A100": 1}
    assert slot_words(config.gpu_types, config.max_nodes) is None


@pytest.mark.parametrize("script", ["echo no driver >&2; exit 9", "exit 0", "printf '\\377'"])
def test_a_machine_whose_gpus_cannot_be_listed_has_slots(no_gpus: Path, script: str) -> None:
    fake_gpus(no_gpus, script)
    assert list(load().gpu_types) == ["slot"]


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("Tesla V100-SXM2-16GB", "V100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX2080Ti"),
        ("Quadro RTX 6000", "QuadroRTX6000"),
        ("NVIDIA", "NVIDIA"),
    ],
)
def test_gpus_go_by_the_names_that_the_catalogue_has(product: str, name: str) -> None:
    assert short_name(product) == name


def test_the_data_folder_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BOA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert load().data_dir == Path("/state/boa")
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    assert load().data_dir == tmp_path / ".local/state/boa"
