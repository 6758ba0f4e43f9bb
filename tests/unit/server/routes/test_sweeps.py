"""Sweeps over the API, the client and the command line."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.client import Client
from boa.errors import InputError
from fakes import FakeService
from integration.runner import Boa

JOB = {"class": "net", "run": "train", "epochs": 9}


def test_the_client_submits_lists_looks_at_and_stops_sweeps(service: FakeService) -> None:
    with Client() as client:
        made = client.submit_sweep(JOB, {"lr": [1, 2], "seed": [1, 2]}, halving={"factor": 2})
        assert (made["id"], made["jobs"]) == ("s1", 4)
        assert made["halving"] is not None
        assert made["halving"]["rungs"] == [1, 2, 4, 8]
        assert made["members"][3]["parameters"] == {"lr": "2", "seed": "2"}
        control = service.control
        control.put(replace(control.active["2"], loss=0.5))
        control.put(replace(control.active["3"], loss=0.7))
        (row,) = client.sweeps()
        assert row["states"] == {"waiting": 4}
        assert row["best"] is not None
        assert (row["best"]["job"], row["best"]["value"]) == ("2", 0.5)
        assert client.job("2")["sweep"] == "s1"
        assert client.job("2")["parameters"] == {"lr": "1", "seed": "2"}
        drawn = client.submit_sweep(JOB, {"lr": {"low": 0, "high": 1}}, draws=3, seed=1)
        assert drawn["jobs"] == 3
        stopped = client.stop_sweep("s1")
        assert stopped["states"] == {"stopped": 4}
        assert [one["id"] for one in client.sweeps()] == ["s2"]
        assert [one["id"] for one in client.sweeps(all=True)] == ["s2", "s1"]
        with pytest.raises(InputError, match="the id of a sweep"):
            client.sweep("17")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "sweeps", {"job": JOB}, 422, "parameters"),
        ("POST", "sweeps", {"job": JOB, "parameters": {"lr": []}}, 422, "parameters.lr"),
        ("POST", "sweeps", {"job": {}, "parameters": {"lr": [1]}}, 422, "job.class"),
        ("POST", "sweeps", {"job": JOB, "parameters": {"a": [1]}, "draws": 1001}, 422, "draws"),
        ("POST", "sweeps", [], 422, "mapping"),
        ("GET", "sweeps/s9", None, 404, "sweep"),
        ("POST", "sweeps/x/stop", None, 404, "sweep"),
        ("GET", "sweeps?limit=0", None, 422, "limit"),
    ],
)
def test_hostile_sweeps_are_refused(
    service: FakeService, method: str, path: str, body: Any, status: int, words: str
) -> None:
    answer = service.ask(method, f"/api/v1/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert words in answer.text
    assert service.control.store.kept == {}


def test_a_sweep_is_one_line_of_ps(run: Boa, service: FakeService, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("class: net\nrun: train\nepochs: 9\n")
    assert run("submit", job, "--sweep", "lr=1e-4,3e-4", "--sweep", "seed=1..5") == "s1\n"
    assert "10 jobs: boa sweep show s1" in run.err
    service.submit("other")
    said = run("ps")
    assert "10 jobs: 10 waiting" in said
    assert len([line for line in said.splitlines() if "net" in line]) == 1
    assert len([line for line in run("ps", "--sweep", "s1").splitlines() if "net" in line]) >= 10
    assert len(run.json("ps")["jobs"]) == 11, "whoever reads JSON has every job"
    assert "lr=0.0001" not in said
    assert "lr=1e-4 seed=5" in run("sweep", "show", "s1")
    assert "s1" in run("sweep", "list")
    assert run("sweep", "stop", "s1") == "sweep s1: over\n"
    assert "no active sweeps" in run("sweep", "list")


def test_a_file_may_have_its_sweep(run: Boa, service: FakeService, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("class: net\nrun: train\nsweep: {parameters: {lr: [1, 2]}}\n")
    assert run.json("submit", job, "--max-cost", 3)["sweep"]["jobs"] == 2
    assert service.control.active["1"].spec.max_cost == 3.0
    assert service.control.active["2"].spec.run == ("sh", "-c", "train --lr 2")
    run("submit", job, "--sweep", "x=1,2", code=2)
    assert "has a sweep of its own" in run.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sweep", "lr"], "--sweep"),
        (["--sweep", "lr=1,2", "--sweep", "lr=3"], "each name once"),
        (["--sweep", "lr=5..1"], "rising"),
        (["--sweep", "lr=0..0.5"], "draws"),
        (["--sweep", "lr=log:3"], "--sweep"),
        (["--sweep", "lr=a..b"], "--sweep"),
        (["--sweep", "lr=1,1"], "each value once"),
        (["--sweep", "lr=1,2", "--halving", ":max"], "--halving"),
        (["--sweep", "lr=1,2", "--halving", "loss:min:x"], "--halving"),
        (["--sweep", "lr=1,2", "--halving", "loss:up"], "halving.better"),
        (["--draws", 3], "go with --sweep"),
        (["--sweep", "lr=1,2", "--wait"], "--wait"),
        (["--sweep", "lr=1,2", "--key", "k"], "job.key"),
    ],
)
def test_wrong_words_are_refused_with_code_2(
    run: Boa, service: FakeService, arguments: list[Any], words: str
) -> None:
    run("submit", "--class", "net", *arguments, "--", "train", code=2)
    assert words in run.err
    assert service.control.store.kept == {}
