"""The settings against what AWS says of them, before anything is rented. Changes nothing."""

import re
from collections.abc import Mapping
from typing import Any

from boa.clouds.aws.calls import CREDENTIALS, Api, AwsFailed
from boa.errors import InputError
from boa.formats.providers import TAG
from boa.model.provider_settings import AwsSettings
from boa.model.workload import GpuType
from boa.units import GpuName

BUSY = ("Throttling", "RequestLimitExceeded", "Internal", "ServiceUnavailable", "Unavailable")
"""How codes begin that say nothing of the credentials."""


def check(api: Api, settings: AwsSettings, gpu_types: Mapping[GpuName, GpuType]) -> dict[str, str]:
    """Raises InputError for the first that is wrong. Gives the zones of the subnets."""
    for name in settings.tags:
        if not re.fullmatch(TAG, name):
            expected = "a name of letters, digits and + - = . , _ : @"
            raise InputError(f"aws.tags.{name}", name, expected)
    _credentials(api, settings)
    _of(api, "image", settings.image, "describe_images", ImageIds=[settings.image])
    if settings.security_groups:
        groups = list(settings.security_groups)
        _of(api, "security_groups", groups, "describe_security_groups", GroupIds=groups)
    subnets = list(settings.subnets)
    found = _of(api, "subnets", subnets, "describe_subnets", SubnetIds=subnets)
    zones = {said["SubnetId"]: said["AvailabilityZone"] for said in found["Subnets"]}
    if len(set(zones.values())) < len(zones):
        problem = f"{', '.join(zones)} are in {', '.join(zones.values())}"
        raise InputError("aws.subnets", subnets, "one subnet for each zone", problem)
    for name, gpu in gpu_types.items():
        _gpus(api, settings, name, gpu)
    return zones


def _credentials(api: Api, settings: AwsSettings) -> None:
    try:
        api.identity()
    except AwsFailed as failed:
        if failed.code.startswith(BUSY):
            raise
        if failed.code:
            raise InputError("AWS", None, CREDENTIALS, failed.message) from failed
        if "credentials" in failed.message.lower() or "profile" in failed.message.lower():
            raise InputError("AWS", None, CREDENTIALS, failed.message.rstrip(".")) from failed
        where = "aws.endpoint" if settings.endpoint else "aws.region"
        expected = "somewhere that answers as AWS does"
        raise InputError(
            where, settings.endpoint or settings.region, expected, failed.message
        ) from failed


def _of(api: Api, field: str, value: Any, operation: str, **params: Any) -> dict[str, Any]:
    try:
        return api.read(operation, **params)
    except AwsFailed as failed:
        if failed.code.startswith("Invalid"):
            expected = f"what there is in this region ({failed.code})"
            raise InputError(f"aws.{field}", value, expected, failed.message) from failed
        raise


def _gpus(api: Api, settings: AwsSettings, name: GpuName, gpu: GpuType) -> None:
    kinds = list(settings.machines[name].instance_types)
    field = f"machines.{name}.instance_types"
    answer = _of(api, field, kinds, "describe_instance_types", InstanceTypes=kinds)
    models: dict[str, str] = {}
    for said in answer["InstanceTypes"]:
        gpus = said.get("GpuInfo", {}).get("Gpus", ())
        models |= {one["Name"]: said["InstanceType"] for one in gpus if "Name" in one}
        has = sum(one["Count"] for one in gpus)
        if has != gpu.gpus_per_node:
            problem = f"got {gpu.gpus_per_node}, and {said['InstanceType']} has {has}"
            expected = f"as many as all of aws.machines.{name}.instance_types have"
            raise InputError(
                f"gpu_types.{name}.gpus_per_node", gpu.gpus_per_node, expected, problem
            )
    if len(models) > 1:
        problem = ", ".join(f"{kind} has {model}" for model, kind in models.items())
        raise InputError(f"aws.{field}", kinds, "types with the same GPUs", problem)
