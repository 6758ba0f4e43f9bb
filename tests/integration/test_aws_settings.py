"""What the AWS cloud costs, what it refuses at the start, and what a dry run tells."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from aws_faults import Layer
from aws_server import A100, REGION, T4, Aws, moto_server
from boa.catalogue.cloud_offers import find
from boa.clouds.aws import AwsCloud, calls
from boa.clouds.aws.dry_run import dry_run
from boa.clouds.base import CloudTrouble
from boa.errors import InputError
from boa.model.cloud import CloudNode
from boa.model.prices import paid
from integration.runner import Boa


@pytest.fixture(scope="module")
def layer() -> Iterator[Layer]:
    with moto_server() as layer:
        yield layer


@pytest.fixture
def aws(layer: Layer, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """botocore does not wait between its tries."""
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))
    return Aws(layer)


def _node(cloud: AwsCloud, token: str) -> CloudNode:
    return next(node for node in cloud.nodes() if node.token == token)


# Prices


def _market(aws: Aws, price: float, kind: str = "g4dn.12xlarge") -> None:
    for zone in aws.zones.values():
        aws.sky.prices.setdefault((kind, zone), []).append((aws.clock.now(), price))


def test_a_spot_node_costs_what_aws_listed_from_when_it_did(aws: Aws) -> None:
    _market(aws, 2.0)
    _market(aws, 8.0, "p4d.24xlarge")
    cloud = aws.cloud(spot=True, unpriced=frozenset({"T4", "A100"}))
    assert cloud.offers()["T4"].price == 0.5
    assert cloud.offers()["A100"].price == 1.0
    aws.after(600.0)
    cloud.rent(f"{aws.owner}-1", "T4")
    aws.after(900.0)
    assert _node(cloud, f"{aws.owner}-1").price == pytest.approx(0.5)
    _market(aws, 4.0)
    aws.after(900.0)
    began = aws.clock.now() - 1800.0
    node = _node(cloud, f"{aws.owner}-1")
    assert paid(node.price, node.changes, began, began + 1800.0) == pytest.approx(1800 * 0.75)
    assert cloud.offers()["T4"].price == 1.0, "planned by from now on"
    asked = len(aws.sky.asked("DescribeSpotPriceHistory"))
    aws.after(100.0)
    cloud.nodes()
    assert len(aws.sky.asked("DescribeSpotPriceHistory")) == asked, "not asked for all the time"
    anew = aws.cloud(spot=True, unpriced=frozenset({"T4", "A100"}))
    node = _node(anew, f"{aws.owner}-1")
    assert paid(node.price, node.changes, began, began + 1900.0) == pytest.approx(
        900 * 0.5 + 1000 * 1.0
    )


def test_the_users_price_is_above_all_others(aws: Aws) -> None:
    _market(aws, 2.0)
    cloud = aws.cloud(spot=True)
    cloud.rent(f"{aws.owner}-1", "T4")
    assert cloud.offers() == {"T4": T4, "A100": A100}
    assert _node(cloud, f"{aws.owner}-1").price == 1.0


def test_prices_that_cannot_be_asked_for_do_not_hide_the_nodes(aws: Aws) -> None:
    _market(aws, 2.0)
    cloud = aws.cloud(gpu_types={"T4": T4}, spot=True, unpriced=frozenset({"T4"}))
    cloud.rent(f"{aws.owner}-1", "T4")
    aws.after(1000.0)
    aws.sky.planned["DescribeSpotPriceHistory"].extend(["500"] * calls.ATTEMPTS)
    assert _node(cloud, f"{aws.owner}-1").price == 0.5


# Mistakes of users


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"image": "ami-0123456789abcdef0"}, r"aws.image: .*does not exist"),
        ({"subnets": ("subnet-0bad",)}, r"aws.subnets: .*subnet-0bad"),
        ({"security_groups": ("sg-0bad",)}, r"aws.security_groups: .*sg-0bad"),
        ({"tags": {"cost centre": "7"}}, r"aws.tags.cost centre: .*letters, digits and"),
        ({"region": "not a region"}, r"aws.region: got 'not a region'; expected a region of AWS"),
        ({"endpoint": "http://127.0.0.1:9"}, r"aws.endpoint: Could not connect"),
    ],
)
def test_settings_that_aws_does_not_know_are_refused_at_the_start(
    aws: Aws, fields: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        aws.cloud(settings=replace(aws.settings, **fields))


def test_two_subnets_in_one_zone_are_refused_as_aws_would(aws: Aws) -> None:
    vpc = aws.ec2.describe_subnets()["Subnets"][0]["VpcId"]
    first = next(iter(aws.zones.items()))
    second = aws.ec2.create_subnet(
        VpcId=vpc, CidrBlock="172.31.200.0/24", AvailabilityZone=first[1]
    )["Subnet"]["SubnetId"]
    with pytest.raises(InputError, match=r"aws.subnets: .*expected one subnet for each zone"):
        aws.cloud(settings=replace(aws.settings, subnets=(first[0], second)))


def test_a_node_has_as_many_gpus_as_its_instance_types(aws: Aws) -> None:
    said = r"gpu_types.T4.gpus_per_node: got 2, and g4dn.12xlarge has 4; expected as many as all"
    with pytest.raises(InputError, match=said):
        aws.cloud(gpu_types={"T4": replace(T4, gpus_per_node=2)})
    unknown = replace(aws.settings.machines["T4"], instance_types=("g4dn.99xlarge",))
    machines = {**aws.settings.machines, "T4": unknown}
    with pytest.raises(InputError, match=r"aws.machines.T4.instance_types: .*g4dn.99xlarge"):
        aws.cloud(settings=replace(aws.settings, machines=machines))


def test_types_with_other_gpus_are_no_substitute(aws: Aws) -> None:
    mixed = replace(aws.settings.machines["A100"], instance_types=("p4d.24xlarge", "p5.48xlarge"))
    machines = {**aws.settings.machines, "A100": mixed}
    with pytest.raises(
        InputError, match=r"aws.machines.A100.instance_types: .*p5.48xlarge has H100"
    ):
        aws.cloud(settings=replace(aws.settings, machines=machines))


def test_a_price_that_nobody_knows_must_be_given(aws: Aws) -> None:
    said = r"gpu_types.T4.price: AWS lists no spot price for g4dn.12xlarge in us-east-1; expected"
    with pytest.raises(InputError, match=said):
        aws.cloud(gpu_types={"T4": T4}, spot=True, unpriced=frozenset({"T4"}))


def test_on_demand_nodes_cost_what_the_catalogue_says_of_their_instance_type(aws: Aws) -> None:
    cloud = aws.cloud(unpriced=frozenset({"T4", "A100"}))
    known = {kind: find("aws", kind, REGION) for kind in ("g4dn.12xlarge", "p4de.24xlarge")}
    t4, a100 = known.values()
    assert t4 is not None
    assert a100 is not None
    assert cloud.offers()["T4"].price == pytest.approx((t4.price_per_hour or 0.0) / 4)
    assert cloud.prices.sources["T4"] == "the catalogue, for g4dn.12xlarge"
    aws.sky.short = {("p4d.24xlarge", subnet) for subnet in aws.zones}
    cloud.rent(f"{aws.owner}-1", "A100")
    assert _node(cloud, f"{aws.owner}-1").price == pytest.approx((a100.price_per_hour or 0.0) / 8)
    assert cloud.offers()["A100"].price != _node(cloud, f"{aws.owner}-1").price


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "Unable to locate cred"),
        ({"AWS_SECRET_ACCESS_KEY": None}, "Partial credentials found"),
        ({"AWS_PROFILE": "nobody"}, r"config profile \(nobody\) could not be found"),
    ],
)
def test_without_credentials_one_line_says_so(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str | None], said: str
) -> None:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    for name, value in environment.items():
        if value is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=rf"AWS: .*{said}.*; expected credentials that"):
        aws.cloud()


def test_credentials_that_aws_refuses_are_told_from_an_aws_that_is_busy(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.sky.planned["GetCallerIdentity"].extend(["throttle"] * calls.ATTEMPTS)
    with pytest.raises(CloudTrouble, match="get_caller_identity"):
        aws.cloud()
    aws.sky.planned["GetCallerIdentity"].append("denied")
    with pytest.raises(InputError, match="AWS: as the test has it; expected credentials"):
        aws.cloud()


# Trying out


def test_a_dry_run_tells_everything_and_changes_nothing(aws: Aws) -> None:
    cloud = aws.cloud(max_nodes={"T4": 3}, max_spend=50.0)
    cloud.rent(f"{aws.owner}-1", "T4")
    cloud.rent(f"{aws.owner}-2", "A100")
    before, asked = aws.there(), len(aws.sky.requests)
    other = replace(aws.settings, setup="pip list")
    trial = aws.cloud(settings=other, gpu_types={"T4": T4}, max_nodes={"T4": 3}, max_spend=50.0)
    steps = dry_run(trial, known={f"{aws.owner}-1"})
    said = {(step.what, step.text) for step in steps}
    orphan = next(one["InstanceId"] for one in before if one["InstanceType"] == "p4d.24xlarge")
    assert {
        ("price", "T4: $1.00 per GPU and hour (the config file)"),
        ("rent", "T4: g4dn.12xlarge, 4 GPUs a node, on demand"),
        ("limit", "spend at any moment: $50.00/h"),
        ("limit", "T4: 3 nodes"),
        ("template", f"change the launch template {aws.owner}-T4, when the first T4 is rented"),
        ("delete", f"delete the launch template {aws.owner}-A100: no GPU type is so called"),
        (
            "terminate",
            f"terminate {orphan} (p4d.24xlarge, A100): nobody here has {aws.owner}-2",
        ),
        ("allowed", "create_fleet: AWS would do it"),
        ("allowed", "terminate_instances: AWS would do it"),
        ("allowed", "create_launch_template: AWS would do it"),
    } == said
    assert aws.there() == before
    changing = ("Create", "Terminate", "Delete", "Modify", "Run")
    for action, params in aws.sky.requests[asked:]:
        assert not action.startswith(changing) or params["DryRun"] == "true"


def test_the_command_prints_what_it_would_do_at_aws_and_needs_no_ray(
    aws: Aws, tmp_path: Path, run: Boa
) -> None:
    config = {
        "engine": "ray",
        "cloud": "aws",
        "data_dir": str(tmp_path / "data"),
        "max_spend_per_hour": 60,
        "gpu_types": {"T4": {"gpus_per_node": 4, "max_nodes": 3}},
        "aws": {
            "region": REGION,
            "image": aws.settings.image,
            "subnets": list(aws.zones),
            "head": "10.0.0.5:6379",
            "endpoint": aws.layer.url,
            "machines": {"T4": {"instance_types": ["g4dn.12xlarge"]}},
        },
    }
    path = tmp_path / "boa.yaml"
    path.write_text(json.dumps(config))
    said = run("serve", "--config", str(path), "--dry-run")
    assert "T4: $0.98 per GPU and hour (the catalogue, for g4dn.12xlarge)" in said
    assert "limit     T4: 3 nodes" in said
    assert "template  create the launch template boa-" in said
    assert not (tmp_path / "data").exists()
    config["aws"]["image"] = "ami-0123456789abcdef0"  # type: ignore[index]
    path.write_text(json.dumps(config))
    run("serve", "--config", str(path), "--dry-run", code=2)
    assert "aws.image: The image id" in run.err


def test_a_dry_run_in_an_empty_account_says_what_it_could_not_try(aws: Aws) -> None:
    said = [step.text for step in dry_run(aws.cloud()) if step.what == "untried"]
    assert said == [
        "create_fleet: can be tried once there is a launch template",
        "terminate_instances: can be tried once there is an instance",
    ]
