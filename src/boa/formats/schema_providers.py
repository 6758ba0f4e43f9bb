"""JSON Schema of what `boa.yaml` says of Ray and AWS; its reader checks a little more."""

from boa.formats import providers
from boa.formats.schema_parts import TEXT, Schema, object_of
from boa.model.provider_settings import RAY_NODES, RaySettings


def ray_schema() -> Schema:
    default = RaySettings()
    return {
        "description": "The Ray cluster, for engine ray.",
        **object_of(
            required={},
            optional={
                "address": {
                    **TEXT,
                    "default": default.address,
                    "pattern": f"^(auto|{providers.HOST_PORT})$",
                    "description": "HOST:PORT of its head; auto: the one this machine belongs to.",
                },
                "nodes": {
                    "enum": list(RAY_NODES),
                    "default": default.nodes,
                    "description": "autoscaler: Ray's own brings and takes nodes, as we ask; "
                    "fixed: those that are there.",
                },
            },
        ),
        "type": ["object", "null"],
    }


def aws_schema() -> Schema:
    return {
        "description": "Nodes rented from AWS, for cloud aws.",
        **object_of(
            required={
                "region": {**TEXT, "description": "Such as us-east-1."},
                "image": _id("ami-", "The AMI that nodes boot."),
                "subnets": _ids("subnet-", "One for each zone that nodes may be in.", 1),
                "machines": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": _machine(),
                    "description": "What every one of the gpu_types is on AWS.",
                },
                "head": {
                    **TEXT,
                    "pattern": f"^{providers.HOST_PORT}$",
                    "description": "HOST:PORT of the Ray head that nodes join.",
                },
            },
            optional={
                "security_groups": _ids("sg-", "Of the nodes.", 0),
                "key_name": {**TEXT, "description": "To log in with."},
                "instance_profile": {**TEXT, "description": "What nodes may do: its name."},
                "setup": {
                    "type": "string",
                    "maxLength": providers.MAX_SETUP,
                    "description": "Shell lines that run on a node before it joins.",
                },
                "tags": {
                    "type": "object",
                    "maxProperties": providers.MAX_TAGS,
                    "propertyNames": {"pattern": providers.TAG},
                    "additionalProperties": TEXT,
                    "description": "Beside our own, on everything.",
                },
                "endpoint": {
                    "type": ["string", "null"],
                    "description": "Where the API is, if not at AWS: an emulator.",
                },
            },
        ),
    }


def _machine() -> Schema:
    return object_of(
        required={"instance_types": _ids("", "Tried in this order; all with the same GPUs.", 1)},
        optional={
            "spot": {
                "type": "boolean",
                "default": False,
                "description": "Cheaper, and may be taken away with two minutes' notice.",
            }
        },
    )


def _id(prefix: str, description: str) -> Schema:
    return {**TEXT, "pattern": rf"^{prefix}[\w.-]+$", "description": description}


def _ids(prefix: str, description: str, least: int) -> Schema:
    one = {key: value for key, value in _id(prefix, "").items() if key != "description"}
    return {"type": "array", "minItems": least, "items": one, "description": description}
