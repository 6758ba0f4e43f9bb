"""Python environments and container images that jobs name, found on the machine where they run.

An environment of conda's or a virtual one is a folder whose `bin` comes first on the PATH: nothing
is activated by a shell, so hooks of packages (conda's activate.d) do not run. uv's projects and
images are commands before the job's own: `uv run`, which makes the environment what the project's
lock file says, and `apptainer exec`, which leaves the command a child of the run's supervisor.
That is why there is no Docker here: its daemon starts containers that no signal of ours reaches.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

CONTAINERS = ("apptainer", "singularity")
NO_CONTAINERS = (
    "nothing: this engine runs images by Apptainer, which is not on the PATH here (and not by "
    "Docker, whose containers it could neither signal nor account for)"
)
MAMBA_ROOTS = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")
SYSTEM_ROOTS = ("/opt/conda", "/opt/miniconda3", "/opt/miniforge3", "/opt/anaconda3")
MOST_LISTED = 64 * 1024


class NoPlace(Exception):
    """An environment or an image cannot be had on this machine: says why."""

    def __init__(self, which: str, value: str, why: str, expected: str) -> None:
        self.which, self.value, self.expected, self.why = which, value, expected, why
        super().__init__(f"{which} {value}: {why}")


@dataclass(frozen=True, slots=True)
class Place:
    """Changes to a command that runs somewhere else than on the bare PATH."""

    env: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    """Words before the command's own."""


def find(
    environment: str,
    image: str,
    *,
    workdir: str,
    env: Mapping[str, str],
    home: str,
    folders: Sequence[str] = (),
    gpus: bool = False,
) -> Place:
    """`env`: the job's, without it; `home`: of who it runs as; `folders`: what an image must see
    beside the working folder. Raises NoPlace."""
    if image:
        return _image(image, workdir, env, folders, gpus)
    kind, _, name = environment.partition(":")
    if kind == "venv":
        return _venv(environment, os.path.join(workdir, os.path.expanduser(name)), env)
    if kind == "conda":
        return _conda(environment, name, env, home)
    if kind == "uv":
        return _uv(environment, os.path.join(workdir, name) if name else workdir, env)
    return Place()


def _venv(said: str, folder: str, env: Mapping[str, str]) -> Place:
    if not _has_python(folder):
        expected = "venv:PATH of a virtual environment, with bin/python in it"
        raise NoPlace("environment", said, f"there is no {folder}/bin/python", expected)
    return Place({"PATH": _first(folder, env), "VIRTUAL_ENV": folder})


def _conda(said: str, name: str, env: Mapping[str, str], home: str) -> Place:
    folder = next((found for found in _prefixes(name, env, home) if _has_python(found)), None)
    if folder is None:
        expected = "conda:NAME as `conda env list` has it on the machine of the job, or conda:/PATH"
        raise NoPlace("environment", said, "conda has no such environment here", expected)
    named = {"CONDA_PREFIX": folder, "CONDA_DEFAULT_ENV": os.path.basename(name)}
    return Place({"PATH": _first(folder, env), **named})


def _prefixes(name: str, env: Mapping[str, str], home: str) -> Iterator[str]:
    """Where conda and its kin may keep an environment of that name."""
    if os.path.isabs(name):
        yield name
        return
    for folder in env.get("CONDA_ENVS_PATH", "").split(os.pathsep):
        if folder:
            yield os.path.join(folder, name)
    for root in _roots(env, home):
        if name == "base":
            yield root
        yield os.path.join(root, "envs", name)
    try:
        with open(os.path.join(home, ".conda", "environments.txt"), encoding="utf-8") as file:
            listed = file.read(MOST_LISTED).splitlines()
    except (OSError, UnicodeDecodeError):
        return
    yield from (line for line in listed if os.path.basename(line) == name)


def _roots(env: Mapping[str, str], home: str) -> Iterator[str]:
    program = env.get("CONDA_EXE") or shutil.which("conda", path=env.get("PATH"))
    if program:
        yield os.path.dirname(os.path.dirname(os.path.realpath(program)))
    if root := env.get("MAMBA_ROOT_PREFIX"):
        yield root
    yield from (os.path.join(home, name) for name in MAMBA_ROOTS)
    yield from SYSTEM_ROOTS


def _uv(said: str, project: str, env: Mapping[str, str]) -> Place:
    expected = "uv, or uv:PATH of a project with a pyproject.toml, on a machine that has uv"
    if shutil.which("uv", path=env.get("PATH")) is None:
        raise NoPlace("environment", said, "uv is not on the PATH here", expected)
    if not os.path.isfile(os.path.join(project, "pyproject.toml")):
        raise NoPlace("environment", said, f"there is no {project}/pyproject.toml", expected)
    frozen = ("--frozen",) if os.path.isfile(os.path.join(project, "uv.lock")) else ()
    return Place(before=("uv", "run", "--project", project, *frozen, "--"))


def _image(
    image: str, workdir: str, env: Mapping[str, str], folders: Sequence[str], gpus: bool
) -> Place:
    program = next((p for p in CONTAINERS if shutil.which(p, path=env.get("PATH"))), None)
    if program is None:
        raise NoPlace("image", image, "Apptainer is not on the PATH here", NO_CONTAINERS)
    source = image
    if image.endswith(".sif") or image.startswith(("/", ".")):
        source = os.path.join(workdir, image)
        if not os.path.exists(source):
            raise NoPlace("image", image, f"there is no {source}", "the path of an image")
    elif "://" not in image:
        source = f"docker://{image}"
    binds = [word for folder in (workdir, *folders) for word in ("--bind", folder)]
    seen = ("--nv",) if gpus else ()
    return Place(before=(program, "exec", *seen, *binds, "--pwd", workdir, source))


def _has_python(folder: str) -> bool:
    return os.access(os.path.join(folder, "bin", "python"), os.X_OK)


def _first(folder: str, env: Mapping[str, str]) -> str:
    return os.pathsep.join([os.path.join(folder, "bin"), *filter(None, [env.get("PATH")])])
