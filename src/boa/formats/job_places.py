"""Fields of a job that say where it runs: a packed folder, an environment, a container image."""

from pathlib import Path
from typing import Any

from boa.formats.env_file import read_env_file
from boa.formats.parts import is_unicode
from boa.formats.shapes import BeyondSchema, Field, Shape, text
from boa.model.job_spec import PACK

MAX_PLACE = 4096
_DIGEST = r"[0-9a-f]{64}"
_PACKAGE = text(
    "workdir, to have that folder packed by `boa submit`, or the SHA-256 of a package that was "
    "uploaded, in hexadecimal",
    pattern=rf"^({PACK}|{_DIGEST})$",
    words="`workdir`, or 64 hexadecimal digits",
)
_ENVIRONMENT = text(
    "conda:NAME or conda:/PATH, venv:PATH, uv, or uv:PATH",
    pattern=r"^(conda:([A-Za-z0-9_][A-Za-z0-9_.+-]*|/[^\x00]*)|venv:[^\x00]+|uv(:[^\x00]+)?)$",
    most=MAX_PLACE,
    fits=lambda value: value.isprintable() and is_unicode(value),
    words="`conda:NAME`, `venv:PATH`, `uv` or `uv:PATH`",
)
_IMAGE = text(
    "a container image: docker://NAME:TAG, NAME:TAG, or the path of a .sif file",
    pattern=r"^[A-Za-z0-9/._][A-Za-z0-9/._:@+~-]*$",
    most=MAX_PLACE,
    words="`docker://NAME:TAG`, `NAME:TAG`, or a path",
)


def _sent(value: Any) -> str:
    expected = (
        "env: the file is read by `boa submit` and by the Python client, who send what is in it"
    )
    raise BeyondSchema(value, expected)


_ENV_FILE: Shape[str] = Shape(
    _sent,
    {"type": "string", "pattern": r"\S", "maxLength": MAX_PLACE},
    "path, in a file relative to it",
)
PLACES = (
    Field(
        "package",
        _PACKAGE,
        "Has the job run in a copy of its own of a folder as it was when it was submitted: "
        "`workdir` is packed and sent.",
        otherwise="none: the folder itself",
        example=PACK,
    ),
    Field(
        "env_file",
        _ENV_FILE,
        "A file of variables (`NAME=value` lines), read where the job is submitted; `env` wins.",
        otherwise="none",
        to=None,
    ),
    Field(
        "environment",
        _ENVIRONMENT,
        "The Python environment, where the job runs: one of conda's by name, a virtual "
        "environment's folder, or uv's project (`uv`: in the job's folder).",
        otherwise="what is on the PATH",
        example="conda:torch24",
    ),
    Field(
        "image",
        _IMAGE,
        "A container image that the command runs in: that of its pods on Kubernetes; else by "
        "Apptainer, where that is installed.",
        otherwise="none",
    ),
)


def check_places(package: str, workdir: str, environment: str, image: str) -> None:
    """That they go together."""
    if package == PACK and not workdir:
        raise BeyondSchema(package, "workdir too: the folder to be packed", at=".package")
    if package and package != PACK and workdir:
        expected = "nothing beside a package that was uploaded: the job runs in it"
        raise BeyondSchema(workdir, expected, at=".workdir")
    if environment and image:
        expected = "nothing beside an image, which has its own"
        raise BeyondSchema(environment, expected, at=".environment")


def with_env_file(document: dict[str, Any], home: Path) -> dict[str, Any]:
    """A job's document with what its `env_file` says in its `env`, which wins."""
    path = document.get("env_file")
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        return document  # the reader words the error
    rest = {key: value for key, value in document.items() if key != "env_file"}
    given = rest.get("env")
    if given is not None and not isinstance(given, dict):
        return rest  # likewise
    return {**rest, "env": {**read_env_file(home / Path(path).expanduser()), **(given or {})}}
