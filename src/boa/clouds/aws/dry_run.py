"""Steps that a service would take at AWS when it starts, and whether it may. Changes nothing."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from boa.amounts import dollars, rate
from boa.clouds.aws import shapes
from boa.clouds.aws.cloud import AwsCloud
from boa.units import GpuName

What: TypeAlias = Literal[
    "price", "rent", "limit", "template", "delete", "terminate", "allowed", "denied", "untried"
]
LATER = {"create_fleet": "a launch template", "terminate_instances": "an instance"}
"""Things that must be there before an operation can be tried."""


@dataclass(frozen=True, slots=True)
class Step:
    what: What
    text: str


def dry_run(cloud: AwsCloud, known: Collection[str] = ()) -> list[Step]:
    """`known`: tokens of the nodes that are written down; all others would be given back."""
    return [
        *_prices(cloud),
        *_limits(cloud),
        *_templates(cloud),
        *_instances(cloud, known),
        *_permissions(cloud),
    ]


def _prices(cloud: AwsCloud) -> Iterator[Step]:
    for name, gpu in cloud.offers().items():
        machine = cloud.settings.machines[name]
        how = "spot" if machine.spot else "on demand"
        kinds = " or ".join(machine.instance_types)
        text = f"{name}: {dollars(gpu.price)} per GPU and hour ({cloud.prices.sources[name]})"
        yield Step("price", text)
        yield Step("rent", f"{name}: {kinds}, {gpu.gpus_per_node} GPUs a node, {how}")


def _limits(cloud: AwsCloud) -> Iterator[Step]:
    spend = "none" if cloud.max_spend is None else rate(cloud.max_spend)
    yield Step("limit", f"spend at any moment: {spend}")
    for name in cloud.offers():
        yield Step("limit", f"{name}: {cloud.max_nodes.get(name, 'any number of')} nodes")


def _templates(cloud: AwsCloud) -> Iterator[Step]:
    for gpu, what in cloud.templates.wanting().items():
        name = shapes.template_name(cloud.owner, gpu)
        yield Step("template", f"{what} the launch template {name}, when the first {gpu} is rented")
    for one in cloud.templates.unused():
        yield Step("delete", f"delete the launch template {one.name}: no GPU type is so called")


def _instances(cloud: AwsCloud, known: Collection[str]) -> Iterator[Step]:
    for one in cloud.instances():
        if not one.is_gone and one.token not in known:
            text = f"terminate {one.id} ({one.kind}, {one.gpu}): nobody here has {one.token}"
            yield Step("terminate", text)


def _permissions(cloud: AwsCloud) -> Iterator[Step]:
    gpu: GpuName = next(iter(cloud.offers()))
    trials: list[tuple[str, dict[str, Any]]] = [
        ("create_launch_template", cloud.templates.creation(gpu))
    ]
    existing = cloud.templates.existing(gpu)
    if existing is not None:
        request = shapes.fleet(
            cloud.settings, cloud.owner, gpu, token="dry-run", attempt=0, template=existing
        )
        trials.append(("create_fleet", request))
    listed = [one.id for one in cloud.instances() if not one.is_gone]
    if listed:
        trials.append(("terminate_instances", {"InstanceIds": listed[:1]}))
    for operation, params in trials:
        refused = cloud.api.would(operation, **params)
        if refused:
            yield Step("denied", refused)
        else:
            yield Step("allowed", f"{operation}: AWS would do it")
    tried = {operation for operation, _ in trials}
    for operation, needed in LATER.items():
        if operation not in tried:
            yield Step("untried", f"{operation}: can be tried once there is {needed}")
