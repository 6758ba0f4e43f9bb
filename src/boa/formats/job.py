"""The job spec: what `boa submit` reads and the service is sent, with every field checked."""

import json
import os
from pathlib import Path
from typing import Any, get_args

from boa.formats.containers import as_given, either, list_of, mapping_of, object_of
from boa.formats.files import read_document
from boa.formats.job_places import PLACES, check_places, with_env_file
from boa.formats.job_terms import TERMS, terms_document
from boa.formats.parts import CLASS, LINE, MAX_NAME, VERSION, VERSION_1, is_unicode
from boa.formats.shapes import (
    BeyondSchema,
    Field,
    Format,
    Wrong,
    choice,
    needed,
    nullable,
    number,
    text,
    then,
    whole,
)
from boa.model.job_spec import PACK, GpuLimits, JobSpec, Launcher, SecretUse

MAX_DOCUMENT_BYTES = 1024**2
MAX_BATCH = 5000
"""Jobs that may be submitted at once."""
MAX_ARGUMENTS = 1000
MAX_RUN_BYTES = 128 * 1024
"""Length of the whole command; no system starts one with a longer argument than this."""
MAX_VALUE_BYTES = 10 * 1024
"""Length of one environment variable."""
MAX_PATH = 4096
MAX_JOB_GPUS = 1024
MAX_GPU_TYPES = 100
MAX_EPOCHS = 10_000
MAX_MODULES, MAX_MODULE = 20, 200
MAX_GRACE_S = 3600.0
MAX_RETRIES = 1000
MAX_SECRETS = 16
"""Secrets of one job: all of them together reach its supervisor in one message."""
LAUNCHERS: tuple[Launcher, ...] = get_args(Launcher)
OURS = "BOA_"
"""Beginning of variables that belong to the service."""
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
"""Shell that runs a command given as one string."""
DEFAULTS = JobSpec(job_class="", run=())
"""Values of a spec that says nothing."""
_FOLDERS = ("workdir", "checkpoint_dir")


def _started(arguments: tuple[str, ...]) -> tuple[str, ...]:
    size = sum(len(argument.encode()) + 1 for argument in arguments)
    if size > MAX_RUN_BYTES:
        most = f"at most {MAX_RUN_BYTES // 1024} KB"
        raise BeyondSchema(arguments, most, f"{size:,} bytes long")
    return arguments


def _value(value: str) -> str:
    if (size := len(value.encode())) > MAX_VALUE_BYTES:
        most = f"at most {MAX_VALUE_BYTES // 1024} KB"
        raise BeyondSchema(value, most, f"{size:,} bytes long")
    return value


def _quoted(value: Any) -> str:
    hint = ' (a number goes in quotes: "1")' if type(value) in (int, float, bool) else ""
    return f"a string of Unicode text without NUL{hint}"


def _limits(least: int, most: int | None = None, types: tuple[str, ...] = ()) -> GpuLimits:
    most = max(least, DEFAULTS.gpus.max) if most is None else most
    if most < least:
        expected = f"a whole number >= {least} and <= {MAX_JOB_GPUS}"
        raise BeyondSchema(most, expected, at=".max")
    return GpuLimits(min=least, max=most, types=types)


_COMMAND = (
    f"a command as one string, or as a list of 1 to {MAX_ARGUMENTS} strings, of Unicode text "
    "without NUL"
)
_PASSED, _PASSED_NOT_BLANK = r"^[^\x00]*$", r"^(?=[\s\S]*\S)[^\x00]*$"
_ARGUMENT = text("a string, of Unicode text without NUL", pattern=_PASSED, fits=is_unicode)
_PROGRAM = text(_COMMAND, pattern=_PASSED_NOT_BLANK, fits=is_unicode)
_RUN = either(
    {
        str: then(_PROGRAM, lambda command: _started((*SHELL, command))),
        list: then(
            list_of(
                _ARGUMENT,
                first=_PROGRAM,
                most=MAX_ARGUMENTS,
                expected=_COMMAND,
                words=f"list of 1 to {MAX_ARGUMENTS} arguments; up to {MAX_RUN_BYTES // 1024} KB",
            ),
            _started,
        ),
    },
    expected=_COMMAND,
)
_VARIABLE = text(
    "a name of letters, digits and _, no digit first; another than "
    f"{OURS}…, {', '.join(RESERVED)}, which are set for the job",
    pattern=rf"^(?!{OURS})(?!({'|'.join(RESERVED)})$)[A-Za-z_][A-Za-z0-9_]*$",
    most=MAX_PATH,
)
SECRET_NAME = text(
    f"a name of letters, digits and _, no digit first, of up to {MAX_NAME} characters",
    pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
    most=MAX_NAME,
)


def _use(name: str, env: str | None = None) -> SecretUse:
    if env is None:
        try:
            _VARIABLE.take(name)
        except Wrong:
            named = f"{{name: {name}, env: VARIABLE}}: {name} is set for the job"
            raise BeyondSchema(name, named) from None
    return SecretUse(name, name if env is None else env)


_SECRETS = list_of(
    either(
        {
            str: then(SECRET_NAME, _use),
            dict: object_of(
                needed("name", SECRET_NAME, "The secret's."),
                Field("env", _VARIABLE, "The variable that holds it.", otherwise="the name"),
                make=_use,
                words="`{name: NAME, env: VARIABLE}`",
            ),
        },
        expected="the name of a secret, or {name: NAME, env: VARIABLE}",
    ),
    least=0,
    most=MAX_SECRETS,
    expected=f"a list of up to {MAX_SECRETS} names of secrets, or {{name: NAME, env: VARIABLE}}",
    words=f"list of up to {MAX_SECRETS} names, or `{{name: NAME, env: VARIABLE}}`",
)
_ENV = mapping_of(
    _VARIABLE,
    then(text(_quoted, pattern=_PASSED, most=MAX_VALUE_BYTES, fits=is_unicode), _value),
    called="NAME",
    least=0,
    expected="a mapping from names to strings",
    words=f"mapping from names to text of up to {MAX_VALUE_BYTES // 1024} KB",
)
_GPUS = object_of(
    Field(
        "min",
        whole(most=MAX_JOB_GPUS),
        "The fewest GPUs it can run on.",
        default=DEFAULTS.gpus.min,
        to="least",
    ),
    Field(
        "max",
        whole(most=MAX_JOB_GPUS),
        "The most GPUs it may get.",
        otherwise=f"{DEFAULTS.gpus.max}, or `min` if that is more",
        to="most",
    ),
    Field(
        "types",
        list_of(
            LINE,
            most=MAX_GPU_TYPES,
            unique="each GPU type once",
            expected=f"a list of 1 to {MAX_GPU_TYPES} names of GPU types; leave it out for any",
            words=f"list of 1 to {MAX_GPU_TYPES} names",
        ),
        "GPU types it can run on.",
        otherwise="any",
    ),
    make=_limits,
    expected="a mapping such as {min: 1, max: 4}",
)
_PRELOAD = list_of(
    text(
        "a module's name, such as torch.nn",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$",
        most=MAX_MODULE,
    ),
    least=0,
    most=MAX_MODULES,
    expected=f"a list of up to {MAX_MODULES} Python modules; [] for none, or leave it out",
    words=f"list of up to {MAX_MODULES} names",
)
_FOLDER = text(
    "an absolute path (in a job file it may be relative to it)",
    pattern=_PASSED_NOT_BLANK,
    most=MAX_PATH,
    fits=lambda value: os.path.isabs(value) and is_unicode(value),
    words="path, in a file relative to it",
)


def _spec(**values: Any) -> JobSpec:
    spec = JobSpec(**values)
    check_places(spec.package, spec.workdir, spec.environment, spec.image)
    taken = set(spec.env)
    for place, use in enumerate(spec.secrets):
        if use.env in taken:
            expected = "a variable that nothing else sets"
            raise BeyondSchema(use.env, expected, at=f".secrets[{place}]")
        taken.add(use.env)
    size = len(json.dumps(job_document(spec), ensure_ascii=False).encode())
    if size > MAX_DOCUMENT_BYTES:
        expected = f"at most {MAX_DOCUMENT_BYTES // 1024**2} MB; larger data goes into files"
        raise BeyondSchema(None, expected, f"{size:,} bytes long")
    return spec


JOB = Format(
    "BOA job",
    "A command and its class: what `boa submit` sends. Durations are seconds.",
    object_of(
        VERSION_1,
        needed(
            "class",
            CLASS,
            "Jobs that share model and data; they share what is learned of their speed.",
            to="job_class",
        ),
        needed(
            "run",
            _RUN,
            "The command: one string for the shell (`sh -c`), or a list of arguments.",
            example=["python", "train.py", "--lr", "0.1"],
        ),
        Field("name", LINE, "For people.", otherwise="the class"),
        Field(
            "env",
            _ENV,
            "Environment variables, values in quotes. `BOA_…`, torchrun's own and "
            "`CUDA_VISIBLE_DEVICES` are set for the job and may not be given.",
            otherwise="none",
            example={"SEED": "1"},
        ),
        Field(
            "secrets",
            _SECRETS,
            "Secrets that the job gets (`boa secret set`), by name: each in the variable of its "
            "name, or another.",
            otherwise="none",
            example=["HF_TOKEN", {"name": "WANDB", "env": "WANDB_API_KEY"}],
        ),
        Field("workdir", _FOLDER, "Where the command runs.", otherwise="a folder of the job's own"),
        *PLACES,
        Field("gpus", _GPUS, "What the job can run on."),
        Field(
            "launcher",
            choice(LAUNCHERS),
            "`workers`: one process per GPU. `torchrun`: one torchrun that starts them. "
            "`single`: one process that is told its width.",
            default=DEFAULTS.launcher,
        ),
        Field(
            "epochs",
            whole(most=MAX_EPOCHS),
            "Stretches of training whose boundaries the job reports.",
            default=DEFAULTS.epochs,
        ),
        Field(
            "total_work",
            nullable(number(above=0)),
            "Progress of the whole job in the units it reports (samples, say), where it is known.",
            otherwise="not known",
        ),
        Field(
            "preload",
            _PRELOAD,
            "Python modules that are imported once and kept, so that the job starts "
            "faster; `[]`: none.",
            otherwise="found out from the script",
            example=["torch", "torchvision"],
        ),
        Field(
            "checkpoint_dir",
            _FOLDER,
            "Where it keeps its checkpoints (`$BOA_CHECKPOINT_DIR`).",
            otherwise="a folder of the job's own",
        ),
        Field(
            "grace_s",
            number(least=0, most=MAX_GRACE_S),
            "From SIGTERM to SIGKILL.",
            default=DEFAULTS.grace_s,
        ),
        Field(
            "retries",
            whole(least=0, most=MAX_RETRIES),
            "How often it is started again after it failed by itself.",
            default=DEFAULTS.retries,
        ),
        *TERMS,
        make=_spec,
        at_most_one=("priority", "weight"),
    ),
)


BATCH = Format(
    "BOA jobs",
    "Jobs that are submitted together: all of them are stored in one transaction, or none.",
    object_of(
        needed("jobs", list_of(JOB.shape, most=MAX_BATCH), "Each as a job of its own."),
        make=as_given,
    ),
)


def read_batch(document: Any) -> tuple[JobSpec, ...]:
    """Specs that are submitted together; an error names which and what of it."""
    found: tuple[JobSpec, ...] = BATCH.shape.read(document)["jobs"]
    return found


def load_job(path: str | Path) -> JobSpec:
    """Read a job file (YAML or JSON); folders in it are relative to the folder it is in, and
    its `env_file` is read."""
    return read_job_spec(below_its_file(read_document(path), path))


def below_its_file(document: Any, path: str | Path) -> Any:
    """A job file's document with folders that are absolute, and with what its `env_file` says."""
    if not isinstance(document, dict):
        return document
    home = Path(path).resolve().parent
    document = with_env_file(document, home)
    if document.get("package") == PACK:
        document.setdefault("workdir", ".")
    return {
        key: _below(home, value) if key in _FOLDERS else value for key, value in document.items()
    }


def _below(home: Path, value: Any) -> Any:
    if not isinstance(value, str) or not value:
        return value  # the reader words the error
    return os.path.abspath(home / os.path.expanduser(value))


def read_job_spec(document: Any, path: str = "") -> JobSpec:
    """A job spec from plain mappings and lists, as YAML and JSON give them."""
    return JOB.shape.read(document, path)


def _named(use: SecretUse) -> Any:
    return use.name if use.env == use.name else {"name": use.name, "env": use.env}


def job_document(spec: JobSpec) -> dict[str, Any]:
    """The spec as JSON has it; `read_job_spec` gives the same spec back.

    Defaults are spelled out, so that a stored job does not change when they do.
    """
    named = {"name": spec.name, "workdir": spec.workdir, "checkpoint_dir": spec.checkpoint_dir}
    named |= {"package": spec.package, "environment": spec.environment, "image": spec.image}
    types = {"types": list(spec.gpus.types)} if spec.gpus.types else {}
    return {
        "version": VERSION,
        "class": spec.job_class,
        "run": list(spec.run),
        **{name: value for name, value in named.items() if value},
        "env": dict(spec.env),
        **({"secrets": [_named(use) for use in spec.secrets]} if spec.secrets else {}),
        "gpus": {"min": spec.gpus.min, "max": spec.gpus.max, **types},
        "launcher": spec.launcher,
        "epochs": spec.epochs,
        "total_work": spec.total_work,
        **({} if spec.preload is None else {"preload": list(spec.preload)}),
        "grace_s": spec.grace_s,
        "retries": spec.retries,
        **terms_document(spec),
    }
