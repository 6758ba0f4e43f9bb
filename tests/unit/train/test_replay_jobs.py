"""From a trace to replay jobs: profiles, what is submitted and when, files for a service."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pytest
import yaml

from boa.cli import shell
from boa.cli.live import replay as command
from boa.errors import InputError, NoServer
from boa.formats.job import job_document, read_job_spec
from boa.formats.profile import load_profile
from boa.formats.service import load_config
from boa.model.job import JobSpec
from boa.model.trace import Trace, TraceJob
from boa.sim.replay_jobs import profiles_of, replay_jobs
from boa.sim.run import World, world_of
from boa.train import replay

TRACE = "name,arrival_s,application,gpus\n" + "".join(
    f"job-{n},{n * 900},{app},2\n" for n, app in enumerate(["cifar10", "ncf", "bert", "ncf"])
)


def world(*applications: str, gpus: tuple[str, ...] = ("T4",), steps: int | None = None) -> World:
    jobs = tuple(
        TraceJob(name=f"job-{n}", arrival_s=600.0 * n, application=app, steps=steps and steps * n)
        for n, app in enumerate(applications, start=1)
    )
    return world_of(Trace(jobs), None, gpus)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "small.csv"
    path.write_text(TRACE)
    return str(path)


def boa(*arguments: str) -> int:
    """Run `boa replay …` and give its exit code."""
    return shell.run(command.app, arguments)


def test_a_profile_has_the_simulator_s_true_rates() -> None:
    here = world("cifar10", "ncf", gpus=("T4", "A100"))
    profiles = profiles_of(here)
    assert [profile.name for profile in profiles.values()] == ["resnet18", "neumf"]
    for app, profile in profiles.items():
        truth = here.truths[app]
        assert profile.rescale_s == truth.rescale_s
        for gpu, table in profile.rates.items():
            assert np.array_equal(table, truth.rates(gpu))
    assert list(profiles["ncf"].rates) == ["T4"], "the only type it was measured on"


def test_a_replay_job_takes_what_the_simulator_s_job_would(tmp_path: Path) -> None:
    here = world("cifar10")
    [(arrival, spec)] = replay_jobs(here, tmp_path)
    profile = replay.read(spec.run[-1])
    truth = here.truths["cifar10"]
    for shape, nodes in (((4,), 1), ((4, 4), 2)):
        rates = replay.rates_on(profile, "T4", sum(shape), nodes)
        predicted = sum(w / s for w, s in zip(profile["work"], rates, strict=True))
        work = truth.work(here.trace.jobs[0])
        simulated = sum(w / s for w, s in zip(work, truth.best_on("T4", shape), strict=True))
        assert predicted == pytest.approx(simulated, rel=1e-9)
    assert arrival == 600.0


def test_specs_ask_for_what_the_profile_can_run_on(tmp_path: Path) -> None:
    [(_, spec)] = replay_jobs(world("cifar10", gpus=("T4", "A100")), tmp_path)
    assert (spec.job_class, spec.name, spec.launcher) == ("resnet18", "job-1", "single")
    assert (spec.gpus.min, spec.gpus.max, spec.gpus.types) == (1, 64, ("T4", "A100"))
    assert spec.epochs == 100
    assert spec.total_work == pytest.approx(sum(replay.read(spec.run[-1])["work"]))
    assert read_job_spec(job_document(spec)) == spec


def test_jobs_of_one_class_may_differ_in_their_work(tmp_path: Path) -> None:
    here = world("gpt2", "gpt2", gpus=("A800",), steps=100)
    jobs = [spec for _, spec in replay_jobs(here, tmp_path)]
    assert profiles_of(here)["gpt2"].work == (150.0,), "the mean"
    for spec, steps in zip(jobs, (100.0, 200.0), strict=True):
        assert spec.total_work == steps
        file, option, scale = spec.run[-3:]
        assert option == "--scale"
        assert replay.read(file, scale)["work"] == pytest.approx([steps])


def test_profiles_and_a_config_are_written_for_a_service(trace: str, tmp_path: Path) -> None:
    out = tmp_path / "live"
    assert boa("profiles", trace, "-o", str(out), "--perfect", "--models", "resnet18,ncf") == 0
    config = load_config(out / "boa.yaml", {"data_dir": tmp_path}, lambda model, types: None)
    assert set(config.priors) == {"resnet18", "neumf"}
    assert config.gpu_types["T4"].gpus_per_node == 4
    known = config.priors["neumf"]
    assert known.profile is not None
    assert known.profile.work == load_profile(out / "neumf.json").work
    assert known.arrivals_per_hour == pytest.approx(2 * 3600 / 2700)
    assert known.measured_weight > 1e6, "no report overrules what is perfectly known"
    assert boa("profiles", trace, "-o", str(out)) == 0
    learned = yaml.safe_load((out / "boa.yaml").read_text())["classes"]["neumf"]
    assert "measured_weight" not in learned


class Server:
    """Stands in for the service: takes jobs, and has a clock."""

    def __init__(self) -> None:
        self.specs: list[JobSpec] = []
        self.now = 0.0
        self.away = False

    def __call__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        pass

    def health(self) -> dict[str, Any]:
        if self.away:
            raise NoServer("http://nowhere", "connection refused")
        self.now += 100.0
        return {"now": self.now}

    def submit(self, spec: JobSpec) -> dict[str, Any]:
        self.specs.append(spec)
        return {"id": str(len(self.specs))}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Server:
    found = Server()
    monkeypatch.setattr("boa.client.Client", found)
    monkeypatch.setenv("BOA_HOME", str(tmp_path / "home"))
    return found


def test_a_trace_is_submitted_in_order_of_arrival(
    service: Server, trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert boa("trace", trace, "--limit", "3", "--speed", "1e6", "--json") == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == ["1", "2", "3"]
    assert [spec.name for spec in service.specs] == ["job-0", "job-1", "job-2"]
    assert Path(service.specs[0].run[-1]) == tmp_path / "home/replay/small/resnet18.json"


def test_jobs_are_submitted_when_they_are_due(service: Server) -> None:
    slept: list[float] = []
    spec = JobSpec(job_class="a", run=("true",))
    jobs = [(0.0, spec), (100.0, spec), (200.0, spec)]
    command.submit_all(service, jobs, speed=10.0, sleep=slept.append)  # type: ignore[arg-type]
    assert slept == pytest.approx([10.0, 20.0], abs=1.0), "counted from the beginning"


def test_the_server_s_speed_is_read_off_its_clock(
    service: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([10.0, 12.0])
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    assert command.watched_speed(service) == 50.0  # type: ignore[arg-type]


def test_without_a_server_nothing_is_written(service: Server, trace: str, tmp_path: Path) -> None:
    service.away = True
    with pytest.raises(NoServer):
        boa("trace", trace)
    assert not (tmp_path / "home").exists()


def test_models_are_named_by_application_or_class(trace: str) -> None:
    with pytest.raises(
        InputError, match="--models: got 'gpt9'; expected one of cifar10, ncf, bert"
    ):
        boa("profiles", trace, "-o", "unused", "--models", "ncf,gpt9")


def test_a_folder_that_cannot_be_written_is_named(trace: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--output .*file.*a folder that can be written to"):
        boa("profiles", trace, "-o", str(tmp_path / "file"))


def test_a_catalogue_model_is_acted_out_here_and_now(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    assert boa("job", "ncf", "--width", "2", "--speed", "1e6") == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "neumf on 2 x T4: starting"
    assert said.splitlines()[-1] == "neumf on 2 x T4: done"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["gpt9"], "MODEL: got 'gpt9'; expected one of resnet18"),
        (["ncf", "--gpus", "H100"], "--gpus: got 'H100'; expected one of T4"),
    ],
)
def test_models_and_types_that_nobody_measured_are_named(
    arguments: list[str], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        boa("job", *arguments)
