"""Where jobs of the local engine run: packages, environments, images, and what they leave."""

import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.model.runs import RunEvent, RunKey
from boa.model.service import RunAs
from boa.packing.pack import Package, pack
from local_runs import Runs
from other_users import passable_folder


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path, warm_parents=0)
    yield runs
    runs.close()


@pytest.fixture
def package(tmp_path: Path) -> Package:
    code = tmp_path / "code"
    code.mkdir()
    (code / "say.sh").write_text("#!/bin/sh\ncat word; echo changed > word\n")
    (code / "say.sh").chmod(0o755)
    (code / "word").write_text("submitted\n")
    return pack(code, most=10**6)


def started(
    runs: Runs, *run: str, package: Package | None = None, attempt: int = 1, **spec: Any
) -> RunKey:
    launch = runs.launch(*run, attempt=attempt, **spec)
    if package is not None:
        file = runs.root / f"{package.digest}.tar.gz"
        if not file.exists():
            file.write_bytes(package.data)
        launch = replace(
            launch, package=str(file), spec=replace(launch.spec, package=package.digest)
        )
    launch = replace(launch, artifacts=str(runs.root / "artifacts" / launch.key.job))
    runs.engine.start(launch)
    return launch.key


def said(runs: Runs, *run: str, **given: Any) -> str:
    key = started(runs, *run, **given)
    runs.end(key)
    return runs.log(key).strip()


def ended(runs: Runs, *run: str, **given: Any) -> RunEvent:
    return runs.end(started(runs, *run, **given))


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


# Packages


def test_every_attempt_runs_in_a_fresh_copy_of_what_was_submitted(
    runs: Runs, package: Package
) -> None:
    assert said(runs, "./say.sh", package=package) == "submitted"
    assert said(runs, "./say.sh", package=package, attempt=2) == "submitted"


def test_a_copy_goes_with_its_last_run_and_not_before(runs: Runs, package: Package) -> None:
    first = started(runs, "true", package=package)
    runs.end(first)
    second = started(runs, "sh", "-c", "sleep 0.2; cat word", package=package, attempt=2)
    runs.engine.forget(first)  # told after the next has begun, as the loop does
    assert runs.end(second).exit_code == 0
    assert runs.log(second) == "submitted\n"
    runs.engine.forget(second)
    assert not (runs.root / "runs" / "1" / "code").exists()


def test_a_damaged_package_ends_its_run_and_says_so(runs: Runs, package: Package) -> None:
    (runs.root / f"{package.digest}.tar.gz").write_bytes(package.data[:-20])
    end = ended(runs, "./say.sh", package=package)
    assert end.exit_code is None
    assert f"its package {package.digest[:12]} cannot be unpacked" in end.reason
    assert not (runs.root / "runs" / "1" / "code").exists()


def test_a_package_that_is_gone_ends_its_run_and_says_so(runs: Runs, package: Package) -> None:
    key = started(runs, "true", package=package)
    runs.end(key)
    (runs.root / f"{package.digest}.tar.gz").unlink()
    launch = runs.launch("true", attempt=2)
    launch = replace(
        launch, package=str(runs.root / "none"), spec=replace(launch.spec, package=package.digest)
    )
    runs.engine.start(launch)
    assert "cannot be unpacked" in runs.end(launch.key).reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run jobs as others")
def test_copies_and_artifacts_are_the_users_that_a_job_runs_as(package: Package) -> None:
    with passable_folder() as place:
        runs = Runs(place, run_as=RunAs(default="nobody"))
        try:
            script = 'id -un; ./say.sh; cat word; echo mine > "$BOA_ARTIFACTS/kept"; pwd'
            name, word, now, where = said(runs, "sh", "-c", script, package=package).split()
            assert (name, word, now) == ("nobody", "submitted", "changed")
            assert where == str(place / "runs" / "1" / "code")
            folder = place / "artifacts" / "1"
            assert (folder.owner(), stat.S_IMODE(folder.stat().st_mode)) == ("nobody", 0o700)
            assert (folder / "kept").read_text() == "mine\n"
        finally:
            runs.close()


def test_artifacts_are_in_a_folder_that_all_attempts_share(runs: Runs) -> None:
    write = 'echo $BOA_ATTEMPT >> "$BOA_ARTIFACTS/attempts"'
    ended(runs, "sh", "-c", write)
    ended(runs, "sh", "-c", write, attempt=2)
    assert (runs.root / "artifacts" / "1" / "attempts").read_text() == "1\n2\n"


# Environments and images


def test_a_virtual_environment_comes_first_on_the_path(runs: Runs, tmp_path: Path) -> None:
    program(tmp_path / "env/bin/python", 'echo "its python $VIRTUAL_ENV $@"')
    where = str(tmp_path)
    text = said(runs, "python", "x.py", workdir=where, environment="venv:env")
    assert text == f"its python {tmp_path}/env x.py"


def test_an_environment_of_condas_is_found_by_its_name(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "conda/envs/torch24/bin/python", 'echo "$CONDA_DEFAULT_ENV $CONDA_PREFIX"')
    monkeypatch.setenv("CONDA_EXE", str(program(tmp_path / "conda/bin/conda", "true")))
    text = said(runs, "python", environment="conda:torch24")
    assert text == f"torch24 {tmp_path}/conda/envs/torch24"


def test_uvs_project_is_that_of_the_package_with_its_lock_file(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin/uv", 'echo "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    project = tmp_path / "project"
    project.mkdir()
    for name in ("pyproject.toml", "uv.lock"):
        (project / name).touch()
    text = said(runs, "python", "x.py", package=pack(project, most=10**6), environment="uv")
    where = tmp_path / "runs/1/code"
    assert text == f"run --project {where} --frozen -- python x.py"


def test_an_image_runs_by_apptainer_and_sees_the_jobs_folders(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin/apptainer", 'echo "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    text = said(runs, "python", "x.py", image="pytorch/pytorch:2.4")
    work = f"{tmp_path}/runs/1/work"
    for folder in (work, f"{tmp_path}/checkpoints/1", f"{tmp_path}/artifacts/1"):
        assert f"--bind {folder}" in text
    assert text.startswith("exec ")
    assert text.endswith(f"--pwd {work} docker://pytorch/pytorch:2.4 python x.py")


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ({"environment": "venv:/none"}, "there is no /none/bin/python"),
        ({"environment": "conda:none-of-this-name"}, "conda has no such environment here"),
        ({"environment": "uv:/none"}, "uv"),
        ({"image": "pytorch/pytorch"}, "Apptainer is not on the PATH here"),
    ],
)
def test_a_place_that_is_not_here_ends_the_run_with_the_reason(
    runs: Runs, place: dict[str, str], why: str
) -> None:
    end = ended(runs, "true", **place)
    assert end.exit_code is None
    assert why in end.reason


def test_a_warm_parent_is_of_the_environments_own_python(tmp_path: Path) -> None:
    """The link in bin/ is what makes it one: it is found, and the script runs by it."""
    folder = tmp_path / "env/bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    (tmp_path / "x.py").write_text("import sys, json\nprint(sys.argv[1:], sys.executable)\n")
    runs = Runs(tmp_path)
    try:
        given = {"workdir": str(tmp_path), "environment": "venv:env", "preload": ("json",)}
        assert str(folder / "python") in said(runs, "python", "x.py", "a", **given)
    finally:
        runs.close()
