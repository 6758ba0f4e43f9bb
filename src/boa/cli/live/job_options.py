"""Fields of a job file as options: what a job is called, runs on and in, for a command."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from boa.cli import parsers, shell
from boa.errors import FileError
from boa.model.job_spec import PACK


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Fields of a job file, for a command without one."""

    name: Annotated[str | None, shell.Option("--name", metavar="N", help="For people.")] = None
    min_gpus: Annotated[
        int | None, shell.Option("--min-gpus", metavar="K", help="The fewest it can run on.")
    ] = None
    max_gpus: Annotated[
        int | None, shell.Option("--max-gpus", metavar="K", help="The most it may get.")
    ] = None
    gpus: Annotated[
        str | None,
        shell.Option("--gpus", metavar="T4,A100", help="GPU types it can run on; default: any."),
    ] = None
    launcher: Annotated[
        str | None,
        shell.Option(
            "--launcher",
            metavar="workers|torchrun|single",
            help="One process per GPU (default), one torchrun, or one process told its width.",
        ),
    ] = None
    epochs: Annotated[
        int | None, shell.Option("--epochs", metavar="N", help="Epochs that the job reports.")
    ] = None
    total_work: Annotated[
        float | None,
        shell.Option("--total-work", metavar="W", help="Its whole work in the units it reports."),
    ] = None
    workdir: Annotated[
        Path | None,
        shell.Option("--workdir", metavar="DIR", help="Where it runs; default: this folder."),
    ] = None
    package: Annotated[
        bool,
        shell.Option(
            "--package",
            help="Pack the folder and send it: the job runs in a copy, as it is now (.boaignore).",
        ),
    ] = False
    environment: Annotated[
        str | None,
        shell.Option(
            "--environment",
            metavar="ENV",
            help="Python environment: conda:NAME, venv:PATH, uv, uv:PATH.",
        ),
    ] = None
    image: Annotated[
        str | None,
        shell.Option(
            "--image",
            metavar="IMAGE",
            help="Container image to run in (its pods' on Kubernetes, else by Apptainer).",
        ),
    ] = None
    env_file: Annotated[
        Path | None,
        shell.Option("--env-file", metavar="FILE", help="Variables from a file; --env wins."),
    ] = None
    env: Annotated[
        list[str] | None,
        shell.Option("--env", metavar="K=V", help="An environment variable; may be repeated."),
    ] = None
    secret: Annotated[
        list[str] | None,
        shell.Option(
            "--secret",
            metavar="NAME[=ENV]",
            help="A secret that it gets (boa secret set), in $NAME or $ENV; may be repeated.",
        ),
    ] = None
    grace_s: Annotated[
        float | None,
        shell.Option("--grace-s", metavar="S", help="From SIGTERM to SIGKILL (30)."),
    ] = None
    retries: Annotated[
        int | None,
        shell.Option("--retries", metavar="N", help="Restarts after failures of its own (3)."),
    ] = None
    weight: Annotated[
        float | None,
        shell.Option("--weight", metavar="X", help="How much its JCT counts (1)."),
    ] = None

    def given(self) -> dict[str, Any]:
        """Those that were given, by the file's names."""
        fields = {
            "name": self.name,
            "gpus": self._limits(),
            "launcher": self.launcher,
            "epochs": self.epochs,
            "total_work": self.total_work,
            "workdir": None if self.workdir is None else absolute(self.workdir),
            "package": PACK if self.package else None,
            "environment": self.environment,
            "image": self.image,
            "env": {
                **_from_env_file(self.env_file),
                **variables(self.env or []),
            },
            "secrets": [_secret(text) for text in self.secret] if self.secret else None,
            "grace_s": self.grace_s,
            "retries": self.retries,
            "weight": self.weight,
        }
        return {key: value for key, value in fields.items() if value not in (None, {})}

    def _limits(self) -> dict[str, Any]:
        named = None if self.gpus is None else [name.strip() for name in self.gpus.split(",")]
        fields = {"min": self.min_gpus, "max": self.max_gpus, "types": named}
        return {key: value for key, value in fields.items() if value is not None}


def variables(given: list[str]) -> dict[str, str]:
    return parsers.pairs("--env", given, "SEED=1")


def _from_env_file(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    from boa.formats.env_file import read_env_file

    return read_env_file(path)


def _secret(text: str) -> dict[str, str]:
    name, equals, env = text.partition("=")
    return {"name": name, "env": env} if equals else {"name": name}


def absolute(folder: Path) -> str:
    try:
        return os.path.abspath(folder)
    except FileNotFoundError:
        expected = "a folder that is there: change to one, or name one with --workdir /..."
        raise FileError("the present folder", "was deleted", expected) from None
