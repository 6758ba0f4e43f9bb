"""The AWS cloud against a real moto server, with delays and faults in front of it."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from aws_faults import Layer
from aws_server import REGION, T4, Aws, moto_server
from boa.catalogue.cloud_offers import find
from boa.clouds.aws import AwsCloud, calls
from boa.clouds.base import CloudTrouble, NoCapacity
from boa.model.cloud import CloudNode


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


# Renting and giving back


def test_a_node_is_rented_boots_joins_and_is_given_back(aws: Aws) -> None:
    cloud, token = aws.cloud(), f"{aws.owner}-1"
    aws.sky.boot_s = aws.sky.stop_s = 60.0
    cloud.rent(token, "T4")
    began = aws.clock.now()
    node = _node(cloud, token)
    assert (node.gpu, node.gpus, node.price) == ("T4", 4, 1.0)
    assert (node.billed_from, node.ready_at, node.gone_at) == (began, None, None)
    aws.after(60.0)
    node = _node(cloud, token)
    assert node.ready_at == began + 60.0
    assert node.address.startswith("ray-i-")
    aws.after(100.0)
    cloud.release(token)
    assert _node(cloud, token).gone_at is None, "charged for until it is gone for sure"
    aws.after(60.0)
    node = _node(cloud, token)
    assert (node.billed_from, node.gone_at) == (began, began + 160.0)
    assert not aws.there()


def test_only_the_node_that_is_given_back_is_terminated(aws: Aws) -> None:
    cloud = aws.cloud()
    for number in range(3):
        cloud.rent(f"{aws.owner}-{number}", "T4")
    cloud.release(f"{aws.owner}-1")
    cloud.release(f"{aws.owner}-1")
    cloud.release(f"{aws.owner}-9")
    left = {node.token for node in cloud.nodes() if node.gone_at is None}
    assert left == {f"{aws.owner}-0", f"{aws.owner}-2"}
    assert len(aws.sky.asked("TerminateInstances")) == 1


def test_under_one_token_one_node_is_rented(aws: Aws) -> None:
    token = f"{aws.owner}-1"
    aws.cloud().rent(token, "T4")
    aws.cloud().rent(token, "T4")  # a service that was started anew
    assert len(aws.there()) == 1
    aws.cloud().release(token)
    aws.cloud().rent(token, "T4")
    assert not aws.there(), "nor again after it was given back"


@pytest.mark.parametrize("fault", ["500-after", "lost"])
@pytest.mark.parametrize("listed_after_s", [0.0, 30.0])
def test_a_node_whose_answer_was_lost_is_not_rented_twice(
    aws: Aws, fault: str, listed_after_s: float
) -> None:
    """AWS remembers the ClientToken; where it is not known to, nothing is asked for blindly."""
    cloud, token = aws.cloud(), f"{aws.owner}-1"
    aws.sky.idempotent, aws.sky.listed_after_s = listed_after_s > 0, listed_after_s
    aws.sky.planned["CreateFleet"].append(fault)
    with pytest.raises(CloudTrouble):
        cloud.rent(token, "T4")
    cloud.rent(token, "T4")
    assert len(aws.there()) == 1


@pytest.mark.parametrize("fault", ["throttle", "500"])
def test_a_request_that_came_to_nothing_can_be_repeated(aws: Aws, fault: str) -> None:
    cloud, token = aws.cloud(), f"{aws.owner}-1"
    aws.sky.planned["CreateFleet"].append(fault)
    with pytest.raises(CloudTrouble, match="AWS, create_fleet: as the test has it"):
        cloud.rent(token, "T4")
    assert not aws.there()
    cloud.rent(token, "T4")
    assert len(aws.there()) == 1


def test_what_can_be_repeated_is_tried_again_a_few_times(aws: Aws) -> None:
    cloud = aws.cloud()
    aws.sky.planned["DescribeInstances"].extend(["throttle", "500", "lost"])
    assert cloud.nodes() == []
    aws.sky.planned["DescribeInstances"].extend(["throttle"] * calls.ATTEMPTS)
    with pytest.raises(CloudTrouble, match="RequestLimitExceeded"):
        cloud.nodes()


def test_a_node_that_is_not_listed_yet_can_be_given_back(aws: Aws) -> None:
    cloud, token = aws.cloud(), f"{aws.owner}-1"
    aws.sky.listed_after_s = 30.0
    cloud.rent(token, "T4")
    assert cloud.nodes() == []
    cloud.release(token)
    assert not aws.there()


def test_lists_of_many_pages_are_read_to_the_end(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boa.clouds.aws.cloud.PAGE", 5)
    cloud = aws.cloud()
    for number in range(7):
        cloud.rent(f"{aws.owner}-{number}", "T4")
    before = len(aws.sky.asked("DescribeInstances"))
    assert len(cloud.nodes()) == 7
    assert len(aws.sky.asked("DescribeInstances")) == before + 2


# What there is none of


def test_another_zone_and_another_type_are_taken_where_there_is_none(aws: Aws) -> None:
    cloud = aws.cloud()
    first, second = aws.zones
    aws.sky.short = {("p4d.24xlarge", first)}
    cloud.rent(f"{aws.owner}-1", "A100")
    aws.sky.short |= {("p4d.24xlarge", second), ("p4de.24xlarge", first)}
    cloud.rent(f"{aws.owner}-2", "A100")
    found = {(one["InstanceType"], one["SubnetId"]) for one in aws.there()}
    assert found == {("p4d.24xlarge", second), ("p4de.24xlarge", second)}


@pytest.mark.parametrize(
    "code", ["InsufficientInstanceCapacity", "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"]
)
def test_where_there_is_none_at_all_the_type_rests_longer_each_time(aws: Aws, code: str) -> None:
    cloud, waits = aws.cloud(), []
    aws.sky.short = {("g4dn.12xlarge", subnet) for subnet in aws.zones}
    aws.sky.short_code = code
    for number in range(3):
        with pytest.raises(NoCapacity, match=rf"AWS has no T4 in 2 zones: .*\({code}\)"):
            cloud.rent(f"{aws.owner}-{number}", "T4")
        asked, began = len(aws.sky.asked("CreateFleet")), aws.clock.now()
        assert asked == number + 1
        with pytest.raises(NoCapacity, match="AWS has no T4 in 2 zones"):
            cloud.rent(f"{aws.owner}-{number}", "T4")
        assert len(aws.sky.asked("CreateFleet")) == asked, "nothing was asked for"
        while cloud._backoff.waiting("T4", aws.clock.now()):
            aws.after(10.0)
        waits.append(aws.clock.now() - began)
    assert waits == [30.0, 60.0, 120.0]
    cloud.rent(f"{aws.owner}-9", "A100")
    aws.sky.short.clear()
    cloud.rent(f"{aws.owner}-2", "T4")
    assert len(aws.there()) == 2, "also under a token that AWS had none for"


def test_what_was_rented_is_not_turned_down_while_its_type_rests(aws: Aws) -> None:
    cloud, token = aws.cloud(), f"{aws.owner}-1"
    aws.sky.planned["CreateFleet"].append("lost")
    with pytest.raises(CloudTrouble):
        cloud.rent(token, "T4")
    aws.sky.short = {("g4dn.12xlarge", subnet) for subnet in aws.zones}
    with pytest.raises(NoCapacity):
        cloud.rent(f"{aws.owner}-2", "T4")
    cloud.rent(token, "T4")
    assert len(aws.there()) == 1


# Guards


def test_no_more_nodes_than_allowed_whoever_asks(aws: Aws) -> None:
    cloud = aws.cloud(max_nodes={"T4": 2})
    aws.sky.listed_after_s = 30.0  # those that are not listed yet count too
    cloud.rent(f"{aws.owner}-1", "T4")
    cloud.rent(f"{aws.owner}-2", "T4")
    with pytest.raises(NoCapacity, match="max_nodes of T4 is 2, and AWS has 2 running for us"):
        cloud.rent(f"{aws.owner}-3", "T4")
    cloud.rent(f"{aws.owner}-4", "A100")
    aws.after(40.0)
    with pytest.raises(NoCapacity, match="max_nodes"):
        aws.cloud(max_nodes={"T4": 2}).rent(f"{aws.owner}-3", "T4")


def test_no_more_dollars_than_allowed_whoever_asks(aws: Aws) -> None:
    cloud = aws.cloud(max_spend=28.0)
    cloud.rent(f"{aws.owner}-1", "A100")
    cloud.rent(f"{aws.owner}-2", "T4")
    expected = "max_spend_per_hour is 28: AWS charges 28.00 now, and another T4 node may be 4.00"
    with pytest.raises(NoCapacity, match=expected):
        cloud.rent(f"{aws.owner}-3", "T4")
    cloud.release(f"{aws.owner}-1")
    cloud.rent(f"{aws.owner}-3", "T4")


def test_the_cap_counts_the_dearest_machine_that_aws_may_choose(aws: Aws) -> None:
    p4d, p4de = (find("aws", f"{kind}.24xlarge", REGION) for kind in ("p4d", "p4de"))
    assert p4d is not None
    assert p4de is not None
    assert p4d.price_per_hour is not None
    assert p4de.price_per_hour is not None
    cap = (p4d.price_per_hour + p4de.price_per_hour) / 2
    with pytest.raises(NoCapacity, match=f"another A100 node may be {p4de.price_per_hour:.2f}"):
        aws.cloud(unpriced={"A100"}, max_spend=cap).rent(f"{aws.owner}-1", "A100")
    assert not aws.there()


def test_a_type_without_a_machine_is_refused(aws: Aws) -> None:
    with pytest.raises(NoCapacity, match="H100 has no machine of AWS; T4, A100 have"):
        aws.cloud().rent(f"{aws.owner}-1", "H100")


# What others left


def test_instances_that_nobody_remembers_are_listed_under_tokens_of_ours(aws: Aws) -> None:
    cloud = aws.cloud()
    cloud.rent(f"{aws.owner}-1", "T4")
    (instance,) = aws.there()
    aws.ec2.create_tags(
        Resources=[instance["InstanceId"]], Tags=[{"Key": "boa:token", "Value": "?"}]
    )
    aws.layer.kept.clear()
    (node,) = aws.cloud().nodes()
    assert node.token == f"{aws.owner}-{instance['InstanceId']}"
    aws.cloud().release(node.token)
    assert not aws.there()


def test_templates_of_types_that_are_no_longer_configured_are_deleted(aws: Aws) -> None:
    cloud = aws.cloud()
    cloud.rent(f"{aws.owner}-1", "T4")
    cloud.rent(f"{aws.owner}-2", "A100")
    later = aws.cloud(gpu_types={"T4": T4})
    nodes = {node.token: node for node in later.nodes()}
    assert [one.name for one in later.templates.ours()] == [f"{aws.owner}-T4"]
    assert nodes[f"{aws.owner}-2"].gpu == "A100", "whose node is still listed"


def test_a_template_has_a_new_version_when_its_contents_change(aws: Aws) -> None:
    aws.cloud().rent(f"{aws.owner}-1", "T4")
    aws.cloud().rent(f"{aws.owner}-2", "T4")
    other = replace(aws.settings, setup="pip list")
    aws.cloud(settings=other).rent(f"{aws.owner}-3", "T4")
    key = "LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version"
    assert [params[key] for params in aws.sky.asked("CreateFleet")] == ["1", "1", "2"]
    assert len(aws.sky.asked("CreateLaunchTemplate")) == 1


def test_a_template_that_somebody_deleted_is_made_again(aws: Aws) -> None:
    cloud = aws.cloud()
    cloud.rent(f"{aws.owner}-1", "T4")
    aws.ec2.delete_launch_template(LaunchTemplateName=f"{aws.owner}-T4")
    aws.layer.kept.clear()
    with pytest.raises(CloudTrouble):
        cloud.rent(f"{aws.owner}-2", "T4")
    cloud.rent(f"{aws.owner}-2", "T4")
    assert len(aws.there()) == 2


def test_a_ray_cluster_that_is_away_is_trouble_and_no_list_without_nodes(aws: Aws) -> None:
    cloud = aws.cloud()

    def away() -> Any:
        raise RuntimeError("the head is gone")

    cloud._joined = away
    with pytest.raises(CloudTrouble, match="Ray cluster could not be asked: the head is gone"):
        cloud.nodes()


# Spot


def test_a_spot_node_that_is_to_be_taken_away_says_when(aws: Aws) -> None:
    cloud, token = aws.cloud(spot=True), f"{aws.owner}-1"
    cloud.rent(token, "T4")
    assert aws.there()[0]["InstanceLifecycle"] == "spot"
    assert _node(cloud, token).leaving_at is None
    aws.after(600.0)
    (id,) = aws.sky.truth
    aws.sky.interrupt(id)
    noticed = aws.clock.now()
    aws.after(5.0)
    assert _node(cloud, token).leaving_at == noticed + 120.0
    aws.after(120.0)
    node = _node(cloud, token)
    assert node.gone_at is not None
    assert node.gone_at >= noticed + 120.0


def test_nobody_asks_for_spot_notices_who_has_no_spot_node(aws: Aws) -> None:
    cloud = aws.cloud()
    cloud.rent(f"{aws.owner}-1", "T4")
    cloud.nodes()
    assert not aws.sky.asked("DescribeSpotInstanceRequests")


# Nodes that boot and do not join


def _dies(aws: Aws, cloud: AwsCloud, token: str) -> None:
    cloud.rent(token, "T4")
    (id,) = (id for id, one in aws.sky.truth.items() if one.token == token)
    aws.sky.end(id, "Client.InstanceInitiatedShutdown")
    cloud.nodes()


def test_nodes_that_end_before_they_join_are_not_rented_on_and_on(aws: Aws) -> None:
    cloud, aws.joins = aws.cloud(), False
    for number, wait in enumerate([30.0, 60.0, 120.0]):
        _dies(aws, cloud, f"{aws.owner}-{number}")
        aws.after(wait - 1.0)
        with pytest.raises(NoCapacity, match=r"i-\w+ did not join"):
            cloud.rent(f"{aws.owner}-x", "T4")
        cloud.rent(f"{aws.owner}-other-{number}", "A100")
        aws.after(1.0)
    cloud.rent(f"{aws.owner}-good", "T4")
    aws.joined[f"{aws.owner}-good"] = "ray-1"
    cloud.nodes()
    _dies(aws, cloud, f"{aws.owner}-4")
    aws.after(30.0)
    cloud.rent(f"{aws.owner}-5", "T4")


def test_nodes_given_back_before_they_join_are_no_reason_to_wait(aws: Aws) -> None:
    cloud, aws.joins = aws.cloud(), False
    cloud.rent(f"{aws.owner}-1", "T4")
    cloud.nodes()
    cloud.release(f"{aws.owner}-1")
    cloud.nodes()
    cloud.rent(f"{aws.owner}-2", "T4")


def test_a_node_that_hangs_while_it_boots_is_a_reason_to_wait(aws: Aws) -> None:
    cloud, aws.joins = aws.cloud(), False
    cloud.rent(f"{aws.owner}-1", "T4")
    assert _node(cloud, f"{aws.owner}-1").leaving_at is None
    aws.after(900.0)
    assert _node(cloud, f"{aws.owner}-1").leaving_at == aws.clock.now()
    cloud.release(f"{aws.owner}-1")
    with pytest.raises(NoCapacity, match="did not join"):
        cloud.rent(f"{aws.owner}-2", "T4")
