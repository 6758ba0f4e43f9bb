"""JSON Schemas of the job spec and the class profile.

As in `boa.formats.schema`, the readers check a little more than a schema can say.
"""

from boa.formats import job, profile
from boa.formats.schema_parts import CLASS, DRAFT, TEXT, VERSION_1, Schema, number, object_of, whole


def job_schema() -> Schema:
    """The schema of the job spec."""
    return {
        "$schema": DRAFT,
        "title": "BOA job",
        "description": "A command and its class: what `boa submit` sends. Durations are seconds.",
        **object_of(
            required={
                "class": {
                    **CLASS,
                    "description": "Jobs that share model and data; they share what is learned of "
                    "their speed.",
                },
                "run": _run(),
            },
            optional={
                "version": VERSION_1,
                "name": {**TEXT, "description": "For people. Without it, the class's name."},
                "env": _env(),
                "gpus": _gpus(),
                "launcher": {
                    "enum": list(job.LAUNCHERS),
                    "default": job.DEFAULTS.launcher,
                    "description": "workers: one process per GPU. torchrun: one torchrun that "
                    "starts them. single: one process that is told its width.",
                },
                "preload": _preload(),
                **_folders(),
                **_training(),
            },
        ),
    }


def _run() -> Schema:
    argument = {"type": "string", "pattern": r"^[^\u0000]*$"}
    return {
        "oneOf": [
            {**argument, "minLength": 1, "allOf": [{"pattern": r"\S"}]},
            {
                "type": "array",
                "minItems": 1,
                "maxItems": job.MAX_ARGUMENTS,
                "items": argument,
                "not": {"prefixItems": [{"pattern": r"^\s*$"}]},
            },
        ],
        "description": "The command: one string for the shell, or a list of arguments. At most "
        f"{job.MAX_RUN_BYTES // 1024} KB.",
        "examples": ["python train.py --lr 0.1", ["python", "train.py"]],
    }


def _env() -> Schema:
    theirs = f"^(?!{job.OURS})(?!({'|'.join(job.RESERVED)})$){job.ENV_PATTERN}$"
    return {
        "type": "object",
        "propertyNames": {"pattern": theirs},
        "additionalProperties": {
            "type": "string",
            "maxLength": job.MAX_VALUE_BYTES,
            "pattern": r"^[^\u0000]*$",
        },
        "description": "Environment variables, values in quotes. BOA_… and torchrun's own (RANK, "
        "WORLD_SIZE and so on) are set for the job and may not be given.",
        "examples": [{"SEED": "1"}],
    }


def _gpus() -> Schema:
    default, most = job.DEFAULTS.gpus, job.MAX_JOB_GPUS
    return {
        "description": "What the job can run on.",
        **object_of(
            required={},
            optional={
                "min": whole("The fewest GPUs it can run on.", 1, most, default=default.min),
                "max": whole("The most GPUs it may get.", 1, most, default=default.max),
                "types": {
                    "type": "array",
                    "items": TEXT,
                    "minItems": 1,
                    "maxItems": job.MAX_GPU_TYPES,
                    "uniqueItems": True,
                    "description": "GPU types it can run on. Without them, any.",
                },
            },
        ),
    }


def _preload() -> Schema:
    return {
        "type": "array",
        "maxItems": job.MAX_MODULES,
        "items": {
            "type": "string",
            "maxLength": job.MAX_MODULE,
            "pattern": f"^{job.MODULE_PATTERN}$",
        },
        "description": "Modules that are imported once and kept, so that the job starts faster. "
        "Without it, found out from the script; empty: none.",
        "examples": [["torch", "torchvision"], []],
    }


def _folders() -> Schema:
    # A file may name them relative to itself; what is sent to a service is absolute.
    folder = {"type": "string", "minLength": 1, "maxLength": job.MAX_PATH}
    return {
        "workdir": {
            **folder,
            "description": "Where the command runs. Without it, a folder of the job's own.",
        },
        "checkpoint_dir": {
            **folder,
            "description": "Where it keeps its checkpoints ($BOA_CHECKPOINT_DIR). Without it, a "
            "folder of the job's own.",
        },
    }


def _training() -> Schema:
    spec = job.DEFAULTS
    return {
        "epochs": whole(
            "Stretches of training whose boundaries the job reports.",
            1,
            job.MAX_EPOCHS,
            default=spec.epochs,
        ),
        "total_work": {
            "type": ["number", "null"],
            "exclusiveMinimum": 0,
            "description": "Progress of the whole job in the units it reports (samples, say), "
            "where it is known.",
        },
        "grace_s": number(
            "From SIGTERM to SIGKILL.",
            minimum=0,
            maximum=job.MAX_GRACE_S,
            default=spec.grace_s,
        ),
        "retries": whole(
            "How often it is started again after it failed by itself.",
            0,
            job.MAX_RETRIES,
            default=spec.retries,
        ),
        "weight": number(
            "How much a second of this job's JCT counts.", exclusiveMinimum=0, default=spec.weight
        ),
    }


def profile_schema() -> Schema:
    """The schema of the profile file."""
    table: Schema = {
        "type": "array",
        "minItems": 1,
        "maxItems": job.MAX_EPOCHS,
        "items": {
            "type": "array",
            "minItems": 1,
            "maxItems": job.MAX_JOB_GPUS,
            "items": {"type": "number", "minimum": 0},
        },
        "description": "For every epoch, units of progress per second at widths 1, 2, …; 0 where "
        "it cannot run. All lists are equally long.",
    }
    rescale = "Mean time of one rescaling; the first start is one."
    return {
        "$schema": DRAFT,
        "title": "BOA class profile",
        "description": "How fast a class trains: what a replay job acts out, and what a new class "
        "can start from (`classes` in boa.yaml).",
        **object_of(
            required={
                "class": {**CLASS, "description": "The class."},
                "work": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": job.MAX_EPOCHS,
                    "items": {"type": "number", "exclusiveMinimum": 0},
                    "description": "Units of progress of every epoch.",
                },
                "rates": {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": TEXT,
                    "additionalProperties": object_of(dict.fromkeys(profile.ROWS, table)),
                    "description": "Rates by GPU type: on one node, and across nodes.",
                },
            },
            optional={"version": VERSION_1, "rescale_s": number(rescale, minimum=0, default=0)},
        ),
    }
