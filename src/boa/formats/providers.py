"""What `boa.yaml` says of Ray and of AWS, checked."""

import re
from collections.abc import Sequence
from typing import Any

from boa.errors import InputError
from boa.formats import checks
from boa.formats.fields import fields, printable
from boa.model.provider_settings import RAY_NODES, AwsMachine, AwsSettings, RaySettings
from boa.units import GpuName

MAX_SETUP = 8000
"""Characters: all that a node is told when it boots must fit into 16 KB."""
MAX_TAGS = 40
"""AWS allows 50 on everything; ours are among them."""
TAG = r"^(?!boa:|aws:)[A-Za-z0-9+=.,_:@-]{1,128}$"
"""What AWS allows in the name of a tag that the node itself can read."""
HOST_PORT = r"[^\s:/]+:\d{1,5}"
_AWS_REQUIRED = ("region", "image", "subnets", "machines", "head")
_AWS_TEXTS = ("key_name", "instance_profile")
_AWS_OPTIONAL = (*_AWS_TEXTS, "security_groups", "setup", "tags", "endpoint")


def ray(value: Any) -> RaySettings:
    given = fields({} if value is None else value, "ray", optional=("address", "nodes"))
    settings = {name: printable(given[name], f"ray.{name}") for name in given}
    address = settings.get("address", "auto")
    if address != "auto" and not re.fullmatch(HOST_PORT, address):
        raise InputError("ray.address", address, "auto, or HOST:PORT of the head (its GCS port)")
    if settings.get("nodes", RAY_NODES[0]) not in RAY_NODES:
        raise InputError("ray.nodes", settings["nodes"], f"one of {', '.join(RAY_NODES)}")
    return RaySettings(**settings)


def aws(value: Any, gpu_types: Sequence[GpuName]) -> AwsSettings:
    given = fields(value, "aws", required=_AWS_REQUIRED, optional=_AWS_OPTIONAL)
    head = printable(given["head"], "aws.head")
    if not re.fullmatch(HOST_PORT, head):
        raise InputError("aws.head", head, "HOST:PORT of the Ray head that nodes join")
    return AwsSettings(
        region=printable(given["region"], "aws.region"),
        image=_id(given["image"], "aws.image", "ami-"),
        subnets=_ids(given["subnets"], "aws.subnets", "subnet-"),
        security_groups=_ids(given.get("security_groups", []), "aws.security_groups", "sg-", 0),
        machines=_machines(given["machines"], gpu_types),
        head=head,
        setup=_setup(given.get("setup", "")),
        tags=_tags(given.get("tags", {})),
        endpoint=printable(given["endpoint"], "aws.endpoint") if given.get("endpoint") else None,
        **{name: printable(given[name], f"aws.{name}") for name in _AWS_TEXTS if name in given},
    )


def _machines(value: Any, gpu_types: Sequence[GpuName]) -> dict[GpuName, AwsMachine]:
    machines = {}
    for name, said in checks.named(value, "aws.machines").items():
        path = f"aws.machines.{name}"
        if name not in gpu_types:
            expected = f"one of the gpu_types: {', '.join(gpu_types) or 'there are none'}"
            raise InputError(path, name, expected)
        given = fields(said, path, required=("instance_types",), optional=("spot",))
        spot = given.get("spot", False)
        if not isinstance(spot, bool):
            raise InputError(f"{path}.spot", spot, "true or false")
        kinds = _ids(given["instance_types"], f"{path}.instance_types", "")
        machines[name] = AwsMachine(instance_types=kinds, spot=spot)
    missing = [name for name in gpu_types if name not in machines]
    if missing:
        expected = "instance types for every one of the gpu_types"
        raise InputError("aws.machines", ", ".join(machines), f"{expected} ({missing[0]} has none)")
    return machines


def _ids(value: Any, path: str, prefix: str, least: int = 1) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) < least:
        example = f" of ids such as {prefix}0abc" if prefix else ""
        raise InputError(path, value, f"a list{example}{', not empty' if least else ''}")
    return tuple(_id(text, f"{path}[{number}]", prefix) for number, text in enumerate(value))


def _id(value: Any, path: str, prefix: str) -> str:
    text = printable(value, path)
    if not re.fullmatch(rf"{prefix}[\w.-]+", text):
        raise InputError(path, value, f"an id such as {prefix}0abc" if prefix else "a name")
    return text


def _setup(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_SETUP or "\0" in value:
        raise InputError("aws.setup", value, f"shell lines, up to {MAX_SETUP} characters")
    return value


def _tags(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > MAX_TAGS:
        raise InputError("aws.tags", value, f"names and values, up to {MAX_TAGS}")
    for name in value:
        if not re.fullmatch(TAG, str(name)):
            expected = "letters, digits and + - = . , _ : @, beginning with neither boa: nor aws:"
            raise InputError(f"aws.tags.{name}", name, expected)
    return {name: printable(text, f"aws.tags.{name}") for name, text in value.items()}
