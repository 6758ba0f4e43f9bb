"""The job spec: what `boa submit` reads and the service is sent, with every field checked."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from boa.errors import InputError
from boa.formats import checks
from boa.formats.fields import VERSION, check_version, class_name, cut, fields, printable
from boa.formats.files import read_document
from boa.model.job_spec import GpuLimits, JobSpec, Launcher
from boa.units import GpuName

MAX_DOCUMENT_BYTES = 1024**2
MAX_ARGUMENTS = 1000
MAX_RUN_BYTES = 128 * 1024
"""Of the whole command; no system starts one with a longer argument than this."""
MAX_VALUE_BYTES = 10 * 1024
"""Of one environment variable."""
MAX_PATH = 4096
MAX_JOB_GPUS = 1024
MAX_GPU_TYPES = 100
MAX_EPOCHS = 10_000
MAX_MODULES, MAX_MODULE = 20, 200
MAX_GRACE_S = 3600.0
MAX_RETRIES = 1000
LAUNCHERS: tuple[Launcher, ...] = get_args(Launcher)
MODULE_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"
ENV_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*"
OURS = "BOA_"
"""What begins so belongs to the service."""
RESERVED = (
    "CUDA_VISIBLE_DEVICES",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "WORLD_SIZE",
)
"""Variables that the engine sets."""
SHELL = ("sh", "-c")
"""What runs a command that was given as one string."""

_OPTIONAL = (
    "version",
    "name",
    "env",
    "workdir",
    "gpus",
    "launcher",
    "epochs",
    "total_work",
    "checkpoint_dir",
    "preload",
    "grace_s",
    "retries",
    "weight",
)
_FOLDERS = ("workdir", "checkpoint_dir")
DEFAULTS = JobSpec(job_class="", run=())
"""What a spec says that says nothing."""


def load_job(path: str | Path) -> JobSpec:
    """Read a job file (YAML or JSON); folders in it are relative to the folder it is in."""
    document = read_document(path)
    if isinstance(document, dict):
        home = Path(path).resolve().parent
        document = {
            key: _below(home, value) if key in _FOLDERS else value
            for key, value in document.items()
        }
    return read_job_spec(document)


def _below(home: Path, value: Any) -> Any:
    if not isinstance(value, str) or not value:
        return value  # the reader words the error
    return os.path.abspath(home / os.path.expanduser(value))


def read_job_spec(document: Any, path: str = "") -> JobSpec:
    """A job spec from plain mappings and lists, as YAML and JSON give them."""
    given = fields(document, path, required=("class", "run"), optional=_OPTIONAL)
    check_version(given, path)

    def at(name: str) -> str:
        return checks.joined(path, name)

    work = given.get("total_work")
    spec = JobSpec(
        job_class=class_name(given["class"], at("class")),
        run=_run(given["run"], at("run")),
        name=printable(given["name"], at("name")) if "name" in given else "",
        env=_env(given.get("env", {}), at("env")),
        gpus=_gpus(given.get("gpus", {}), at("gpus")),
        launcher=_launcher(given.get("launcher", DEFAULTS.launcher), at("launcher")),
        epochs=checks.whole(given.get("epochs", DEFAULTS.epochs), at("epochs"), most=MAX_EPOCHS),
        total_work=None if work is None else checks.number(work, at("total_work"), above=0),
        preload=_preload(given["preload"], at("preload")) if "preload" in given else None,
        grace_s=checks.number(
            given.get("grace_s", DEFAULTS.grace_s), at("grace_s"), least=0, most=MAX_GRACE_S
        ),
        retries=checks.whole(
            given.get("retries", DEFAULTS.retries), at("retries"), least=0, most=MAX_RETRIES
        ),
        weight=checks.number(given.get("weight", DEFAULTS.weight), at("weight"), above=0),
        **{name: _folder(given[name], at(name)) for name in _FOLDERS if name in given},
    )
    _check_size(spec, path)
    return spec


def _run(value: Any, path: str) -> tuple[str, ...]:
    expected = f"a command as one string, or as a list of 1 to {MAX_ARGUMENTS} strings"
    arguments: tuple[str, ...]
    if isinstance(value, str):
        arguments = (*SHELL, _argument(value, path, expected))
        command = value
    elif isinstance(value, list) and 0 < len(value) <= MAX_ARGUMENTS:
        arguments = tuple(_argument(a, f"{path}[{n}]", "a string") for n, a in enumerate(value))
        command = arguments[0]
    else:
        raise InputError(path, value, expected)
    if not command.strip():
        raise InputError(path, value, expected)
    size = sum(len(argument.encode()) + 1 for argument in arguments)
    if size > MAX_RUN_BYTES:
        raise InputError(path, value, f"at most {MAX_RUN_BYTES // 1024} KB", f"{size:,} bytes long")
    return arguments


def _argument(value: Any, path: str, expected: str) -> str:
    if not isinstance(value, str) or not _can_be_passed(value):
        raise InputError(path, value, f"{expected}, of Unicode text without NUL")
    return value


def _can_be_passed(text: str) -> bool:
    """Whether a process can be given it. JSON can spell half a surrogate pair, which it cannot."""
    return not re.search("[\x00\ud800-\udfff]", text)


def _env(value: Any, path: str) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise InputError(path, value, "a mapping from names to strings")
    return {
        _env_name(name, path): _env_value(text, f"{path}.{cut(name)}")
        for name, text in value.items()
    }


def _env_name(name: Any, path: str) -> str:
    where = f"{path}.{cut(name)}"
    if not isinstance(name, str) or len(name) > MAX_PATH or not re.fullmatch(ENV_PATTERN, name):
        raise InputError(where, name, "a name of letters, digits and _, no digit first")
    if name.startswith(OURS) or name in RESERVED:
        expected = f"another name: {OURS}…, {', '.join(RESERVED)} are set for the job"
        raise InputError(where, name, expected)
    return name


def _env_value(value: Any, path: str) -> str:
    if not isinstance(value, str) or not _can_be_passed(value):
        quoted = ' (a number goes in quotes: "1")' if type(value) in (int, float, bool) else ""
        raise InputError(path, value, f"a string of Unicode text without NUL{quoted}")
    if len(value.encode()) > MAX_VALUE_BYTES:
        problem = f"{len(value.encode()):,} bytes long"
        raise InputError(path, value, f"at most {MAX_VALUE_BYTES // 1024} KB", problem)
    return value


def _folder(value: Any, path: str) -> str:
    if (
        not isinstance(value, str)
        or not os.path.isabs(value)
        or len(value) > MAX_PATH
        or not _can_be_passed(value)
    ):
        raise InputError(path, value, "an absolute path (in a job file it may be relative to it)")
    return value


def _gpus(value: Any, path: str) -> GpuLimits:
    given = fields(value, path, optional=("min", "max", "types"))
    least = checks.whole(given.get("min", 1), f"{path}.min", most=MAX_JOB_GPUS)
    most = given.get("max", max(least, DEFAULTS.gpus.max))
    return GpuLimits(
        min=least,
        max=checks.whole(most, f"{path}.max", least=least, most=MAX_JOB_GPUS),
        types=_gpu_types(given["types"], f"{path}.types") if "types" in given else (),
    )


def _gpu_types(value: Any, path: str) -> tuple[GpuName, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_GPU_TYPES:
        expected = f"a list of 1 to {MAX_GPU_TYPES} names of GPU types; leave it out for any"
        raise InputError(path, value, expected)
    names = tuple(printable(name, f"{path}[{n}]") for n, name in enumerate(value))
    if len(set(names)) < len(names):
        raise InputError(path, value, "each GPU type once")
    return names


def _preload(value: Any, path: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_MODULES:
        expected = f"a list of up to {MAX_MODULES} Python modules; [] for none, or leave it out"
        raise InputError(path, value, expected)
    for number, name in enumerate(value):
        module = isinstance(name, str) and len(name) <= MAX_MODULE
        if not module or not re.fullmatch(MODULE_PATTERN, name):
            raise InputError(f"{path}[{number}]", name, "a module's name, such as torch.nn")
    return tuple(value)


def _launcher(value: Any, path: str) -> Launcher:
    for launcher in LAUNCHERS:
        if value == launcher:
            return launcher
    raise InputError(path, value, f"one of {', '.join(LAUNCHERS)}")


def _check_size(spec: JobSpec, path: str) -> None:
    size = len(json.dumps(job_document(spec), ensure_ascii=False).encode())
    if size > MAX_DOCUMENT_BYTES:
        expected = f"at most {MAX_DOCUMENT_BYTES // 1024**2} MB; larger data goes into files"
        raise InputError(path or "the job", None, expected, f"{size:,} bytes long")


def job_document(spec: JobSpec) -> dict[str, Any]:
    """The spec as JSON has it; `read_job_spec` gives the same spec back.

    Defaults are spelled out, so that a stored job does not change when they do.
    """
    named = {"name": spec.name, "workdir": spec.workdir, "checkpoint_dir": spec.checkpoint_dir}
    types = {"types": list(spec.gpus.types)} if spec.gpus.types else {}
    return {
        "version": VERSION,
        "class": spec.job_class,
        "run": list(spec.run),
        **{name: value for name, value in named.items() if value},
        "env": dict(spec.env),
        "gpus": {"min": spec.gpus.min, "max": spec.gpus.max, **types},
        "launcher": spec.launcher,
        "epochs": spec.epochs,
        "total_work": spec.total_work,
        **({} if spec.preload is None else {"preload": list(spec.preload)}),
        "grace_s": spec.grace_s,
        "retries": spec.retries,
        "weight": spec.weight,
    }
