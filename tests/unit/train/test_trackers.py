"""Metrics in trackers are reports, and reports can go to trackers."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from boa import train
from boa.train import sender, session, trackers
from boa.train.session import Session
from reporting import Service
from training import run_alone
from unit.train.test_reports import service

assert service  # a fixture

Begin = Callable[..., Session]
WANDB = (
    "class Run:\n    def log(self, data, step=None, commit=None):\n        self.said = data, step\n"
)
MLFLOW = """\
class MlflowClient:
    def log_metric(self, run_id, key, value, timestamp=None, step=None):
        return key, value
    def log_batch(self, run_id, metrics=(), params=(), tags=()):
        return len(metrics)
"""
WRITER = """\
class SummaryWriter:
    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None):
        self.said = tag, scalar_value, global_step
    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        self.said = main_tag
"""


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch, service: Service) -> Iterator[Begin]:
    """A job's session, and trackers that are watched from its beginning to its end."""
    begun: list[Session] = []
    monkeypatch.setattr(sender, "CLOSING_S", 60.0)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))

    def make(**environment: object) -> Session:
        given = {"BOA_REPORT_URL": service.url, "BOA_REPORT_EVERY_S": "0", **environment}
        for name, value in given.items():
            monkeypatch.setenv(name, str(value))
        new = Session()
        begun.append(new)
        monkeypatch.setattr(session, "session", lambda: new)
        trackers.watch()
        return new

    yield make
    for old in begun:
        old.close()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], ModuleType]:
    """Installs a module as trackers have it, and imports it."""

    def install(name: str, code: str) -> ModuleType:
        *folders, last = name.split(".")
        place = tmp_path
        for folder in folders:
            place = place / folder
            place.mkdir(exist_ok=True)
            (place / "__init__.py").touch()
        (place / f"{last}.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        for part in [key for key in sys.modules if key.partition(".")[0] == folders[0]]:
            monkeypatch.delitem(sys.modules, part)
        made = importlib.import_module(name)
        for part in [key for key in sys.modules if key.partition(".")[0] == folders[0]]:
            monkeypatch.delitem(sys.modules, part)
        return made

    return install


def test_what_is_logged_to_wandb_is_reported_and_logged_all_the_same(
    begin: Begin, package: Any
) -> None:
    now = begin()
    run = package("wandb.sdk.wandb_run", WANDB).Run()
    run.log({"train/loss": 0.5, "accuracy": 0.9, "picture": object(), "name": "x"}, step=10)
    assert run.said[1] == 10
    assert (now.loss, now.metrics) == (0.5, {"train/loss": 0.5, "accuracy": 0.9})


def test_what_is_logged_to_tensorboard_is_reported(begin: Begin, package: Any) -> None:
    now = begin()
    writer = package("tensorboardX.writer", WRITER).SummaryWriter()
    writer.add_scalar("Loss/train", 0.25, 7)
    writer.add_scalars("accuracy", {"top1": 0.5}, global_step=8)
    assert writer.said == "accuracy"
    assert now.loss == 0.25
    assert now.metrics == {"Loss/train": 0.25, "accuracy/top1": 0.5}


def test_what_is_logged_to_mlflow_is_reported(begin: Begin, package: Any) -> None:
    now = begin()
    client = package("mlflow.tracking.client", MLFLOW).MlflowClient()
    assert client.log_metric("run", "loss", 0.5, step=3) == ("loss", 0.5)
    assert client.log_batch("run", [SimpleNamespace(key="f1", value=0.7, step=4)]) == 1
    assert (now.loss, now.metrics) == (0.5, {"loss": 0.5, "f1": 0.7})


def test_steps_are_progress_where_the_script_says_nothing_of_it(begin: Begin) -> None:
    now = begin()
    for step in (100, 150, 3, 200):  # a metric by epoch is among them
        trackers.seen({"loss": 1.0}, step)
    assert (now.units, now.at.progress, now.at.step) == (100, 200, 200)


def test_a_script_that_counts_itself_counts_alone(begin: Begin) -> None:
    now = begin()
    train.report(samples=32, step=1)
    trackers.seen({"accuracy": 0.5}, 1000)
    assert (now.units, now.step, now.metrics) == (32, 1, {"accuracy": 0.5})


def test_other_ranks_are_not_heard(begin: Begin) -> None:
    now = begin(RANK=1)
    trackers.seen({"loss": 1.0}, 5)
    assert now.metrics == {}


def test_outside_of_a_job_nothing_is_changed(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOA_REPORT_URL", raising=False)
    before = list(sys.meta_path)
    trackers.watch()
    assert sys.meta_path == before
    run = package("wandb.sdk.wandb_run", WANDB).Run
    assert not hasattr(run.log, "__wrapped__")


def test_a_tracker_that_is_built_otherwise_is_left_alone(begin: Begin, package: Any) -> None:
    begin()
    assert package("wandb.sdk.wandb_run", "Run = None\n").Run is None


def test_it_needs_nothing_but_the_standard_library() -> None:
    said = run_alone("print(train.forward.__name__)", BOA_REPORT_URL="http://127.0.0.1:1/x")
    assert said == "forward\n"


def test_reports_are_forwarded_and_are_no_news_there(begin: Begin, package: Any) -> None:
    now = begin()
    writer = package("tensorboardX.writer", WRITER + "    def flush(self): pass\n").SummaryWriter()
    said: list[tuple[dict[str, float], int | None]] = []
    train.forward(writer, lambda metrics, step: said.append((metrics, step)), every_s=0.0)
    train.report(samples=8, step=2, loss=0.5, accuracy=0.25)
    assert said == [({"loss": 0.5, "accuracy": 0.25}, 2)]
    assert writer.said == ("accuracy", 0.25, 2)
    assert now.units == 8


def test_reports_that_come_too_soon_go_with_the_last(begin: Begin) -> None:
    now, said = begin(), list[Any]()
    train.forward(lambda metrics, step: said.append((metrics["loss"], step)), every_s=1e6)
    for step in range(5):
        train.report(samples=1, step=step, loss=float(step))
    assert said == [(0.0, 0)]
    now.close()
    assert said == [(0.0, 0), (4.0, 4)]


def test_a_tracker_that_fails_is_left_out_and_training_goes_on(
    begin: Begin, capsys: pytest.CaptureFixture[str]
) -> None:
    begin()

    def broken(metrics: object, step: object) -> None:
        raise OSError("disk full")

    train.forward(broken, every_s=0.0)
    train.report(samples=1, loss=1.0)
    train.report(samples=1, loss=1.0)
    assert capsys.readouterr().err.count("disk full") == 1


@pytest.mark.parametrize("where", ["neptune", 7])
def test_a_tracker_that_nobody_knows_is_refused(where: object) -> None:
    with pytest.raises(ValueError, match="expected one of mlflow, tensorboard, wandb"):
        train.forward(where)


def test_a_tracker_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ValueError, match="mlflow is not installed"):
        train.forward("mlflow")


def test_mlflow_loads_it_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOA_REPORT_URL", raising=False)
    monkeypatch.setenv("BOA_JOB_ID", "7")
    monkeypatch.setenv("BOA_CLASS", "bert")
    plugin = trackers.MlflowContext()
    assert plugin.in_context()
    assert plugin.tags()["boa.job"] == "7"
