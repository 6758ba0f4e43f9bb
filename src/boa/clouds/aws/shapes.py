"""Requests to AWS, spelled as AWS takes them. Pure."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from boa.clouds.aws.bootstrap import script
from boa.model.provider_settings import AwsMachine, AwsSettings
from boa.model.workload import GpuType
from boa.units import GpuName

OWNER, TOKEN, GPU = "boa:owner", "boa:token", "boa:gpu"


def tags(settings: AwsSettings, owner: str, gpu: GpuName, token: str = "") -> list[dict[str, str]]:
    """Users' tags, and ours over them."""
    own = {OWNER: owner, GPU: gpu, "Name": f"boa {gpu}"}
    if token:
        own |= {TOKEN: token, "Name": f"boa {gpu} {token}"}
    return [{"Key": key, "Value": value} for key, value in {**settings.tags, **own}.items()]


def tagged(said: Sequence[Mapping[str, str]], *kinds: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": list(said)} for kind in kinds]


def template_name(owner: str, gpu: GpuName) -> str:
    """Names that AWS does not take are told apart by a hash."""
    name = f"{owner}-{gpu}"
    plain = re.sub(r"[^\w.-]", "-", name, flags=re.ASCII)[:100]
    return name if plain == name else f"{plain}-{_hash(name)[:8]}"


def template_data(settings: AwsSettings, owner: str, gpu: GpuType) -> dict[str, Any]:
    """All of a node but its type, its zone and its token.

    A launch fails if there is nothing of a kind that is to be tagged: no request, if not for spot.
    """
    kinds = ["instance", "volume"]
    if settings.machines[gpu.name].spot:
        kinds.append("spot-instances-request")
    data: dict[str, Any] = {
        "ImageId": settings.image,
        "UserData": base64.b64encode(script(settings, gpu).encode()).decode(),
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            "InstanceMetadataTags": "enabled",
        },
        "TagSpecifications": tagged(tags(settings, owner, gpu.name), *kinds),
    }
    if settings.security_groups:
        data["SecurityGroupIds"] = list(settings.security_groups)
    if settings.key_name:
        data["KeyName"] = settings.key_name
    if settings.instance_profile:
        kind = "Arn" if settings.instance_profile.startswith("arn:") else "Name"
        data["IamInstanceProfile"] = {kind: settings.instance_profile}
    return data


def contents(data: Mapping[str, Any]) -> str:
    """By which a version of a template is known again."""
    return _hash(json.dumps(data, sort_keys=True))[:32]


def fleet(
    settings: AwsSettings,
    owner: str,
    gpu: GpuName,
    *,
    token: str,
    attempt: int,
    template: Mapping[str, str],
) -> dict[str, Any]:
    """One node: any of its instance types in any of the zones, all in one call.

    AWS does nothing twice under one ClientToken, and answers as it did before: also that it had
    none. So an attempt that was answered is followed by one under another.
    """
    machine = settings.machines[gpu]
    how = {"AllocationStrategy": "price-capacity-optimized" if machine.spot else "prioritized"}
    return {
        "Type": "instant",
        "ClientToken": _hash(f"{token} {attempt}"),
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": dict(template),
                "Overrides": _overrides(machine, settings.subnets),
            }
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": "spot" if machine.spot else "on-demand",
        },
        "SpotOptions" if machine.spot else "OnDemandOptions": how,
        "TagSpecifications": tagged(tags(settings, owner, gpu, token), "fleet", "instance"),
    }


def _overrides(machine: AwsMachine, subnets: Sequence[str]) -> list[dict[str, Any]]:
    """On demand the first type is tried in all zones, then the next; spot goes by price.

    AWS refuses a fleet that names anything twice.
    """
    return [
        {
            "InstanceType": kind,
            "SubnetId": subnet,
            **({} if machine.spot else {"Priority": float(rank)}),
        }
        for rank, kind in enumerate(dict.fromkeys(machine.instance_types))
        for subnet in dict.fromkeys(subnets)
    ]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
