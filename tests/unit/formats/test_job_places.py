"""Where a job runs, as its file says it: packages, files of variables, environments, images."""

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from boa.errors import InputError
from boa.formats.env_file import read_env_file
from boa.formats.job import JOB, job_document, load_job, read_job_spec

DIGEST = "0123456789abcdef" * 4
BASE = {"class": "a", "run": ["python", "train.py"]}


def written(folder: Path, text: str) -> Path:
    path = folder / "job.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "given",
    [
        {"package": DIGEST},
        {"package": "workdir", "workdir": "/work"},
        {"environment": "conda:torch24"},
        {"environment": "conda:/opt/conda/envs/a"},
        {"environment": "venv:.venv"},
        {"environment": "uv"},
        {"environment": "uv:/srv/project"},
        {"image": "docker://pytorch/pytorch:2.4"},
        {"image": "/images/torch.sif"},
    ],
)
def test_a_place_survives_being_written_and_read(given: dict[str, Any]) -> None:
    spec = read_job_spec({**BASE, **given})
    assert {key: value for key, value in job_document(spec).items() if key in given} == given
    assert read_job_spec(job_document(spec)) == spec
    assert Draft202012Validator(JOB.schema()).is_valid(job_document(spec))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"package": "../../etc"}, "package"),
        ({"package": DIGEST.upper()}, "package"),
        ({"package": DIGEST + "0"}, "package"),
        ({"package": 7}, "package"),
        ({"package": "workdir"}, "package"),
        ({"package": DIGEST, "workdir": "/work"}, "workdir"),
        ({"environment": "pip:x"}, "environment"),
        ({"environment": "conda:-n"}, "environment"),
        ({"environment": "conda:a b"}, "environment"),
        ({"environment": "venv:"}, "environment"),
        ({"environment": "venv:a\nb"}, "environment"),
        ({"environment": "uv", "image": "a"}, "environment"),
        ({"image": "--bind=/etc"}, "image"),
        ({"image": "a b"}, "image"),
        ({"image": "a;b"}, "image"),
        ({"env_file": "/etc/shadow"}, "env_file"),
        ({"env_file": 3}, "env_file"),
    ],
)
def test_a_place_that_makes_no_sense_is_refused_by_name(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as wrong:
        read_job_spec({**BASE, **given})
    assert wrong.value.field == field


def test_no_one_else_than_who_submits_reads_the_file_of_variables(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\n")
    with pytest.raises(InputError, match="boa submit"):
        read_job_spec({**BASE, "env_file": str(tmp_path / ".env")})


def test_a_job_files_env_file_is_relative_to_it_and_env_wins(tmp_path: Path) -> None:
    (tmp_path / "vars").write_text("A=1\nB=2\n")
    path = written(tmp_path, "class: a\nrun: x\nenv_file: vars\nenv: {B: '3'}\n")
    spec = load_job(path)
    assert dict(spec.env) == {"A": "1", "B": "3"}
    assert "env_file" not in job_document(spec)


def test_a_file_of_variables_cannot_set_what_is_the_services(tmp_path: Path) -> None:
    (tmp_path / "vars").write_text("BOA_JOB_ID=1\n")
    with pytest.raises(InputError, match="env"):
        load_job(written(tmp_path, "class: a\nrun: x\nenv_file: vars\n"))


def test_a_package_of_a_job_file_is_its_own_folder_unless_it_names_another(tmp_path: Path) -> None:
    path = written(tmp_path, "class: a\nrun: x\npackage: workdir\n")
    assert load_job(path).workdir == str(tmp_path.resolve())
    path.write_text("class: a\nrun: x\npackage: workdir\nworkdir: code\n")
    assert load_job(path).workdir == str(tmp_path.resolve() / "code")


def test_lines_of_variables_are_read_as_people_write_them(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(
        "# comment\n\nA=1\nexport B = two words # comment\nC='it $is #so'\n"
        'D="a\\nb \\"c\\" $HOME"\nE=\nF=a#b\nA=last\n'
    )
    assert read_env_file(path) == {
        "A": "last",
        "B": "two words",
        "C": "it $is #so",
        "D": 'a\nb "c" $HOME',
        "E": "",
        "F": "a#b",
    }


@pytest.mark.parametrize("line", ["SECRET", "1A=secret", "A-B=secret", "A='secret", 'A="secret" x'])
def test_a_line_that_sets_nothing_is_named_by_its_number_and_not_shown(
    tmp_path: Path, line: str
) -> None:
    path = tmp_path / ".env"
    path.write_text(f"OK=1\n{line}\n")
    with pytest.raises(InputError, match="line 2") as wrong:
        read_env_file(path)
    assert "secret" not in str(wrong.value).lower()


@pytest.mark.parametrize("content", [b"A=\xff", b"A=" + b"x" * 300_000, None])
def test_a_file_that_is_none_of_variables_is_an_error(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / ".env"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match="env_file"):
        read_env_file(path)
