"""Secrets of jobs on the local engine: they are in the job's environment, and in no file."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_runs import Runs, until
from warm_runs import WARM, Scripts

VALUE = "hunter2-and-some-more"
SECRETS = {"KEY": VALUE, "PEM": "-----BEGIN-----\nMIIEvQIBADANBg\n-----END-----\n"}
SHOW = 'echo ${#KEY}; echo "$KEY"; echo "$PEM"'


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Scripts]:
    runs = Scripts(tmp_path)
    yield runs
    runs.close()


def on_disk(folder: Path, text: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes()]


def test_a_job_has_its_secrets_and_its_log_has_stars(runs: Runs) -> None:
    key = runs.start("sh", "-c", f"{SHOW}; sleep 1000", secrets=SECRETS)
    until(lambda: len(runs.log(key).splitlines()) >= 6)
    length, value, *lines = runs.log(key).splitlines()
    assert (length, value) == (f"{len(VALUE)}", "*" * len(VALUE))
    assert not [line for line in lines if line.strip("*")]
    assert on_disk(runs.root, VALUE) == []
    assert on_disk(runs.root, "MIIEvQIBADANBg") == []


def test_the_report_token_of_a_run_is_masked_as_its_secrets_are(runs: Scripts) -> None:
    token = "1795712615.98cd6342d08b58ce34b3b15bb9ff8d09"
    env = {"BOA_REPORT_TOKEN": token}
    key = runs.start("sh", "-c", "env; echo ${#BOA_REPORT_TOKEN}", env_of_service=env)
    runs.end(key)
    lines = runs.log(key).splitlines()
    assert f"BOA_REPORT_TOKEN={'*' * len(token)}" in lines
    assert lines[-1] == f"{len(token)}"
    warm = f"{WARM}print(warm, os.environ['BOA_REPORT_TOKEN'], flush=True)"
    key = runs.run(warm, job="2", env_of_service=env)
    runs.end(key)
    assert runs.log(key).split() == ["True", "*" * len(token)]


def test_a_warm_start_has_them_too_and_its_parent_keeps_none(runs: Scripts) -> None:
    script = f"{WARM}import time; print(warm, os.environ['KEY'], flush=True); time.sleep(1000)"
    key = runs.run(script, secrets=SECRETS)
    runs.until_printed(key, "\n")
    assert runs.log(key).split() == ["True", "*" * len(VALUE)]
    (parent,) = runs.parents
    assert VALUE.encode() not in Path(f"/proc/{parent}/environ").read_bytes()
    other = runs.run("import os; print(os.environ.get('KEY'))", job="2")
    runs.end(other)
    assert runs.log(other).strip() == "None"
    assert on_disk(runs.root, VALUE) == []


def test_a_secret_that_is_printed_bit_by_bit_is_masked_all_the_same(runs: Runs) -> None:
    slowly = "".join(f"printf '%s' '{sign}'; sleep 0.01; " for sign in VALUE)
    key = runs.start("sh", "-c", f"{slowly} echo; echo huntergatherer", secrets=SECRETS)
    runs.end(key)
    assert runs.log(key) == f"{'*' * len(VALUE)}\nhuntergatherer\n"


def test_a_run_that_was_not_begun_gets_its_secrets_from_the_service_that_comes_back(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = runs.launch("sh", "-c", SHOW, secrets=SECRETS)

    def none_left(*_: object, **__: object) -> int:
        raise BlockingIOError

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_spawnp", none_left)
        with pytest.raises(BlockingIOError):
            runs.engine.start(launch)
    assert on_disk(runs.root, VALUE) == []
    runs.crash()
    runs.engine.start(launch)
    runs.end(launch.key)
    assert runs.log(launch.key).startswith(f"{len(VALUE)}\n")


def test_a_run_with_secrets_that_is_stopped_before_it_began_ends_as_any_other(runs: Runs) -> None:
    launch = runs.launch("true", secrets=SECRETS)
    planned = runs.engine._new_run(launch.key)
    files = runs.engine._beginnings.of(launch, planned.mark, planned.cgroup).files
    runs.engine._begin(launch.key, files)
    runs.engine.stop(launch.key, 0.0)
    assert runs.end(launch.key).reason == "stopped before it began"


def test_the_line_that_tells_why_a_run_failed_has_stars_too(runs: Runs) -> None:
    key = runs.start("sh", "-c", 'echo "KeyError: $KEY"; exit 3', secrets=SECRETS)
    assert runs.end(key).said == f"KeyError: {'*' * len(VALUE)}"
