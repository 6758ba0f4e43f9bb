"""JSON Schema of `boa.yaml`; as in `boa.formats.schema`, its reader checks a little more."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from boa.formats import service
from boa.formats.schema_parts import CLASS, DRAFT, TEXT, VERSION_1, Schema, number, object_of, whole
from boa.formats.schema_providers import aws_schema, ray_schema
from boa.model.policies import live_policies
from boa.model.provider_settings import CLOUDS_OF
from boa.model.service import ClassPrior, ServiceConfig


def config_schema() -> Schema:
    """The schema of `boa.yaml`."""
    return {
        "$schema": DRAFT,
        "title": "BOA service",
        "description": "How `boa serve` is set up. Flags win over it; every field may be left "
        "out. Durations are seconds, rates per hour, money USD.",
        **object_of(
            required={},
            optional={
                "version": VERSION_1,
                **_targets(),
                "gpu_types": {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": TEXT,
                    "additionalProperties": _gpu_type(),
                    "description": "GPU types that can be rented. Without them, this machine's "
                    "GPUs as one node, or four nodes of four slots.",
                },
                **_names(),
                **_numbers(),
                **_places(),
                "local": _local(),
                "ray": ray_schema(),
                "aws": aws_schema(),
                "classes": {
                    "type": "object",
                    "propertyNames": CLASS,
                    "additionalProperties": _prior(),
                    "description": "What is believed of classes before their jobs have shown "
                    "anything.",
                },
            },
        ),
    }


def _defaults(kind: type[ServiceConfig] | type[ClassPrior]) -> Mapping[str, Any]:
    return {part.name: part.default for part in dataclasses.fields(kind)}


def _targets() -> Schema:
    optional = {"type": ["number", "null"], "exclusiveMinimum": 0}
    return {
        "budget_per_hour": number(
            "Average spend per hour that is steered to.",
            exclusiveMinimum=0,
            default=service.DEFAULT_BUDGET,
        ),
        "max_spend_per_hour": {
            **optional,
            "description": "Never spend more than this at any moment.",
        },
        "target_efficiency": {
            **optional,
            "maximum": 1,
            "description": "Of policies that scale to an efficiency, not a budget.",
        },
    }


def _gpu_type() -> Schema:
    nodes = whole("At most so many nodes; without it, no limit.", 1, service.MAX_NODES)
    return {
        "description": "A kind of GPU that can be rented.",
        **object_of(
            required={},
            optional={
                "price": number(
                    "USD per GPU and hour; with cloud aws, without it, AWS's.",
                    exclusiveMinimum=0,
                    default=1,
                ),
                "gpus_per_node": whole(
                    "GPUs on one node.", 1, service.MAX_GPUS_PER_NODE, default=1
                ),
                "max_nodes": {**nodes, "type": ["integer", "null"]},
            },
        ),
        "type": ["object", "null"],
    }


def _names() -> Schema:
    meaning = {
        "policy": "Which policy decides; those that are not boa need target_efficiency.",
        "engine": "What starts jobs.",
        "cloud": "What nodes are rented from; without it, what goes with the engine.",
        "host": "Where the service listens. Without a token in $BOA_TOKEN, loopback only.",
    }
    default = _defaults(ServiceConfig)
    clouds = list(dict.fromkeys(name for names in CLOUDS_OF.values() for name in names))
    limited = {
        "policy": {"enum": list(live_policies())},
        "engine": {"enum": list(CLOUDS_OF)},
        "cloud": {"enum": clouds},
    }
    return {
        name: {**limited.get(name, TEXT), "default": default[name], "description": meaning[name]}
        for name in service.NAMES
    }


def _numbers() -> Schema:
    meaning = {
        "speed": "Server seconds per second of the wall: compressed time, for demos and tests.",
        "round_s": "How often a policy is asked that looks at all jobs at once.",
        "replan_s": "How often the plan is made anew.",
        "keep_warm_s": "How long an empty node is kept before it is given back.",
        "pacing_h": "Over how many hours an overspent or underspent dollar is made good.",
        "refused_s": "After the cloud said no: how long until it is asked again.",
        "backoff_s": "Before the first restart of a job that failed; doubles each time.",
    }
    words = {"above": "exclusiveMinimum", "least": "minimum", "most": "maximum"}
    default = _defaults(ServiceConfig)
    return {
        name: number(
            meaning[name],
            default=default[name],
            **{words[kind]: limit for kind, limit in bounds.items()},
        )
        for name, bounds in service.NUMBERS.items()
    }


def _places() -> Schema:
    default = _defaults(ServiceConfig)
    return {
        "port": whole(
            "Where it listens; 0: any free one.",
            0,
            service.MAX_PORT,
            default=default["port"],
        ),
        "url": {
            "type": "string",
            "maxLength": service.MAX_TEXT,
            "pattern": service.URL,
            "description": "Where jobs reach the service: http://HOST:PORT. Without it, where it "
            "listens, which other machines may not reach.",
        },
        "warm_parents": whole(
            "Processes kept that have imported what jobs import, at most; 0: none.",
            0,
            service.MAX_WARM_PARENTS,
            default=default["warm_parents"],
        ),
        "data_dir": {
            "type": "string",
            "pattern": r"\S",
            "description": "Where it keeps its database, logs and checkpoints; relative to this "
            "file. Without it, $BOA_HOME, $XDG_STATE_HOME/boa or ~/.local/state/boa.",
        },
        "db": {
            "type": "string",
            "maxLength": service.MAX_TEXT,
            "pattern": "://",
            "description": "SQLAlchemy's URL of the database. Without it, a SQLite file in "
            "data_dir.",
        },
        "log_mb": number(
            "MB kept of every worker's log, per attempt.",
            exclusiveMinimum=0,
            maximum=service.MAX_LOG_MB,
            default=default["log_bytes"] / 1024**2,
        ),
    }


def _local() -> Schema:
    meaning = {
        "provision_s": "From renting a node until jobs can start on it.",
        "release_s": "How long a node is charged for after it was given back.",
    }
    limits = {"minimum": 0, "maximum": service.WEEK_S, "default": 0}
    return {
        "description": "How the local cloud acts.",
        **object_of(
            required={},
            optional={name: number(meaning[name], **limits) for name in service.LOCAL},
        ),
    }


def _prior() -> Schema:
    meaning = {
        "arrivals_weight_h": "How many hours of history arrivals_per_hour is worth.",
        "measured_weight": "How many reports the profile is worth at every width; 0: the first "
        "report overrules it.",
    }
    default = _defaults(ClassPrior)
    return {
        **object_of(
            required={},
            optional={
                "profile": {
                    "type": "string",
                    "maxLength": service.MAX_TEXT,
                    "pattern": r"\S",
                    "description": "A profile file (`boa schema profile`), relative to this file.",
                },
                "catalogue": {**TEXT, "description": "A model of the catalogue."},
                "arrivals_per_hour": {
                    "type": ["number", "null"],
                    "minimum": 0,
                    "description": "Jobs that are expected per hour.",
                },
                **{
                    name: number(meaning[name], minimum=0, maximum=most, default=default[name])
                    for name, most in service.PRIOR_WEIGHTS.items()
                },
            },
        ),
        "type": ["object", "null"],
        "not": {"type": "object", "required": ["profile", "catalogue"]},
    }
