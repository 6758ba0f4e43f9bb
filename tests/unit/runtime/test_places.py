"""What a job names is looked for when it is submitted, as far as can be known."""

import os
from pathlib import Path
from typing import Any

import pytest

from boa.errors import InputError
from boa.model.access import NOBODY
from boa.model.job import JobSpec
from boa.packing.pack import pack
from boa.runtime.packages import PackageShelf
from boa.runtime.places import KnownPlaces


@pytest.fixture
def shelf(tmp_path: Path) -> PackageShelf:
    return PackageShelf(tmp_path / "packages")


@pytest.fixture
def here(shelf: PackageShelf) -> KnownPlaces:
    return KnownPlaces(shelf, lambda: {"PATH": os.environ["PATH"]})


def spec(*run: str, **fields: Any) -> JobSpec:
    return JobSpec(job_class="a", run=run or ("true",), **fields)


def refused(places: KnownPlaces, job: JobSpec, at: str = "") -> tuple[str, str]:
    with pytest.raises(InputError) as wrong:
        places.check(job, NOBODY, at)
    return wrong.value.field, str(wrong.value)


def uploaded(shelf: PackageShelf, folder: Path, **files: str) -> str:
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    package = pack(folder, most=10**6)
    total = len(package.data)
    shelf.receive(package.digest, NOBODY, offset=0, total=total, data=package.data)
    return package.digest


def test_a_folder_that_is_not_there_is_named_by_its_job(here: KnownPlaces, tmp_path: Path) -> None:
    field, _ = refused(here, spec(workdir=str(tmp_path / "none")), "jobs[3].")
    assert field == "jobs[3].workdir"
    here.check(spec(workdir=str(tmp_path)), NOBODY)


@pytest.mark.parametrize("command", ["no-such-command-here", "/no/such/command", "./none"])
def test_a_command_that_is_not_there_is_an_error(
    here: KnownPlaces, tmp_path: Path, command: str
) -> None:
    assert refused(here, spec(command, workdir=str(tmp_path)))[0] == "run"


def test_a_script_that_is_not_there_is_an_error(here: KnownPlaces, tmp_path: Path) -> None:
    job = spec("python", "train.py", workdir=str(tmp_path))
    assert "train.py" in refused(here, job)[1]
    assert (
        "train.py"
        in refused(here, spec("sh", "-c", job.run[0] + " train.py -x", workdir=str(tmp_path)))[1]
    )
    (tmp_path / "train.py").touch()
    here.check(job, NOBODY)


@pytest.mark.parametrize(
    "run",
    [
        ("sh", "-c", "no-such-command-here"),
        ("sh", "-c", "cd sub && python train.py"),
        ("python", "-m", "mine"),
        ("python", "$SCRIPT.py"),
        ("python", "-u", "train.py"),
    ],
)
def test_what_only_a_shell_or_python_can_tell_is_left_to_them(
    here: KnownPlaces, tmp_path: Path, run: tuple[str, ...]
) -> None:
    here.check(spec(*run, workdir=str(tmp_path)), NOBODY)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"environment": "venv:none"}, "environment"),
        ({"environment": "conda:none-of-this-name"}, "environment"),
        ({"image": "pytorch/pytorch"}, "image"),
    ],
)
def test_environments_and_images_that_are_not_here_are_errors(
    here: KnownPlaces, tmp_path: Path, fields: dict[str, str], field: str
) -> None:
    assert refused(here, spec(workdir=str(tmp_path), **fields))[0] == field


def test_an_image_is_refused_with_the_reason_and_why_it_is_not_dockers(here: KnownPlaces) -> None:
    said = refused(here, spec(image="pytorch/pytorch"))[1]
    assert "Apptainer" in said
    assert "Docker" in said


def test_a_package_must_have_been_uploaded_and_have_the_script(
    here: KnownPlaces, shelf: PackageShelf, tmp_path: Path
) -> None:
    assert refused(here, spec(package="0" * 64))[0] == "package"
    assert "boa submit" in refused(here, spec(package="workdir", workdir="/"))[1]
    digest = uploaded(shelf, tmp_path / "code", train="")
    here.check(spec("python", "train.py", package=digest), NOBODY)
    here.check(spec("python", "./train.py", package=digest), NOBODY)
    assert ".boaignore" in refused(here, spec("python", "other.py", package=digest))[1]
    assert refused(here, spec("./none.sh", package=digest))[0] == "run"


@pytest.mark.parametrize("environment", ["venv:/no-such", "venv:~/no-such", "uv:/no-such"])
def test_an_environment_outside_of_the_package_is_looked_for_too(
    here: KnownPlaces, shelf: PackageShelf, tmp_path: Path, environment: str
) -> None:
    digest = uploaded(shelf, tmp_path / "code", train="")
    job = spec("python", "train.py", package=digest, environment=environment)
    assert refused(here, job)[0] == "environment"


@pytest.mark.parametrize("engine_is_here", [True, False])
def test_a_virtual_environment_that_stayed_behind_when_packing_is_told(
    shelf: PackageShelf, tmp_path: Path, engine_is_here: bool
) -> None:
    """`.venv` beside the script is what people have; a start would not find it in the copy."""
    here = {"PATH": os.environ["PATH"]}
    places = KnownPlaces(shelf, (lambda: here) if engine_is_here else None)
    digest = uploaded(shelf, tmp_path / "code", train="")
    job = spec("python", "train.py", package=digest, environment="venv:.venv")
    field, said = refused(places, job, "jobs[1].")
    assert field == "jobs[1].environment"
    assert ".venv/bin/python" in said
    assert "stay behind" in said
    assert "pyproject.toml" in refused(places, spec(package=digest, environment="uv"))[1]


def test_elsewhere_nothing_is_known_but_packages(shelf: PackageShelf, tmp_path: Path) -> None:
    elsewhere = KnownPlaces(shelf, None)
    elsewhere.check(spec("no-such-command", workdir="/none", environment="conda:x"), NOBODY)
    elsewhere.check(spec("python", "/none/train.py"), NOBODY)
    digest = uploaded(shelf, tmp_path / "code", train="")
    assert refused(elsewhere, spec("python", "other.py", package=digest))[0] == "run"


def test_what_others_may_not_see_is_not_told(shelf: PackageShelf, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    for folder in tmp_path.parents:
        if not os.stat(folder).st_mode & 0o001:
            break
    else:
        os.chmod(tmp_path, 0o755)
    places = KnownPlaces(shelf, lambda: {"PATH": os.environ["PATH"]}, as_others=True)
    places.check(spec(workdir=str(closed / "none")), NOBODY)
    places.check(spec("python", str(closed / "none.py")), NOBODY)
    assert refused(places, spec(workdir="/no-such-folder"))[0] == "workdir"
    program = tmp_path / "apptainer"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    places = KnownPlaces(shelf, lambda: {"PATH": str(tmp_path)}, as_others=True)
    places.check(spec(image=str(closed / "none.sif")), NOBODY)
    assert refused(places, spec(image="/no-such-image.sif"))[0] == "image"
