"""The parts of the AWS cloud that ask nobody: lists, prices, waiting, and what is asked for."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.clouds.aws import shapes
from boa.clouds.aws.bootstrap import JOIN_S
from boa.clouds.aws.calls import AwsFailed
from boa.clouds.aws.listing import Instance, instances
from boa.clouds.aws.prices import between
from boa.clouds.aws.watching import LEFT_S, Moment, Watch
from boa.clouds.backoff import Backoff
from boa.model.cloud import CloudNode
from boa.model.prices import price_at
from boa.model.provider_settings import AwsMachine, AwsSettings
from boa.model.workload import GpuType

OWNER = "boa-1234"
T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
SETTINGS = AwsSettings(
    region="us-east-1",
    image="ami-1",
    subnets=("subnet-a", "subnet-b"),
    machines={"T4": AwsMachine(instance_types=("g4dn.12xlarge", "g4dn.metal"))},
    head="10.0.0.5:6379",
)
RUNNING = Instance(
    id="i-1",
    token=f"{OWNER}-7",
    gpu="T4",
    kind="g4dn.12xlarge",
    zone="us-east-1a",
    spot=False,
    state="running",
    launched=1000.0,
)


def _said(id: str, token: str | None, launched: float, state: str = "running") -> dict[str, Any]:
    tags = [{"Key": "boa:gpu", "Value": "T4"}]
    if token is not None:
        tags.append({"Key": "boa:token", "Value": token})
    return {
        "InstanceId": id,
        "InstanceType": "g4dn.12xlarge",
        "LaunchTime": datetime.fromtimestamp(launched, UTC),
        "State": {"Name": state},
        "StateTransitionReason": "User initiated (2026-09-21 14:13:20 GMT)",
        "Tags": tags,
    }


def _pages(*said: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"Reservations": [{"Instances": [one]}]} for one in said]


TOKENS = st.one_of(
    st.none(), st.sampled_from([f"{OWNER}-1", f"{OWNER}-2", f"{OWNER}-i-3", "boa-other-1", ""])
)


@given(st.lists(st.tuples(TOKENS, st.integers(0, 3)), max_size=8))
def test_every_instance_is_listed_once_under_a_token_of_ours(given_: list[Any]) -> None:
    said = [_said(f"i-{n}", token, 1000.0 + at) for n, (token, at) in enumerate(given_)]
    found = instances(_pages(*said), OWNER)
    assert sorted(one.id for one in found) == sorted(one["InstanceId"] for one in said)
    assert all(one.token.startswith(f"{OWNER}-") for one in found)
    assert len({one.token for one in found}) == len(found)


def test_of_two_instances_under_one_token_the_younger_is_nobodys() -> None:
    token = f"{OWNER}-1"
    said = [_said("i-young", token, 1001.0), _said("i-old", token, 1000.0, "terminated")]
    found = {one.id: one.token for one in instances(_pages(*said), OWNER)}
    assert found == {"i-old": token, "i-young": f"{OWNER}-i-young"}


def test_an_instance_is_charged_until_aws_began_to_take_it_down() -> None:
    said = _said("i-1", f"{OWNER}-1", 1000.0, "terminated")
    assert instances(_pages(said), OWNER)[0].ended == 1_790_000_000.0
    running = {**said, "State": {"Name": "running"}}
    assert instances(_pages(running), OWNER)[0].ended is None


PRICES = st.lists(
    st.tuples(st.floats(0, 1000), st.floats(0.01, 50)),
    min_size=1,
    max_size=6,
    unique_by=lambda p: p[0],
).map(sorted)


@given(PRICES, st.floats(0, 1000), st.floats(1e-6, 1000), st.floats(0, 1))
def test_prices_between_two_moments_are_those_that_held_then(
    points: Any, since: float, length: float, part: float
) -> None:
    (begin, first), *later = between(points, since, since + length)
    assert begin == since
    at = since + part * length * (1 - 1e-9)
    before = [price for moment, price in points if moment <= at]
    assert price_at(first, tuple(later), at) == (before[-1] if before else points[0][1])
    assert all(since < moment < since + length for moment, _ in later)


def test_a_price_counts_from_when_it_changed() -> None:
    listed = [(0.0, 1.0), (100.0, 3.0), (120.0, 3.0), (150.0, 2.0)]
    assert between(listed, 50.0, 150.0) == [(50.0, 1.0), (100.0, 3.0)]


def test_a_change_of_price_stays_where_it_was_first_seen_though_clocks_drift() -> None:
    watch, prices = Watch(), [(1000.0, 1.0), (1005.0, 2.0)]
    first = _seen(watch, 1010.0, prices=prices)
    again = watch.seen(
        RUNNING, Moment(now=1020.0, wall=1020.5, joined={}, marked={}), gpus=4, prices=prices
    )
    assert first.changes == again.changes == ((1005.0, 2.0),)


def test_each_refusal_doubles_the_wait_up_to_a_quarter_of_an_hour() -> None:
    backoff, now, waits = Backoff(), 0.0, []
    for _ in range(7):
        backoff.refused("T4", now, "none left")
        began = now
        while backoff.waiting("T4", now) is not None:
            now += 1.0
        waits.append(now - began)
    assert waits == [30, 60, 120, 240, 480, 900, 900]
    assert backoff.waiting("A100", now) is None
    backoff.had("T4")
    backoff.refused("T4", now, "none left")
    assert backoff.waiting("T4", now) == "none left"


def _seen(
    watch: Watch, now: float, one: Instance = RUNNING, prices: Any = None, **known: Any
) -> CloudNode:
    moment = Moment(now=now, wall=now, **{"joined": {}, "marked": {}, **known})
    return watch.seen(one, moment, gpus=4, prices=prices or [(now, 1.0)])


def test_an_instance_that_runs_is_ready_when_it_has_joined() -> None:
    watch = Watch()
    assert _seen(watch, 1010.0).ready_at is None
    node = _seen(watch, 1020.0, joined={RUNNING.token: "ray-1"})
    assert (node.ready_at, node.address) == (1020.0, "ray-1")
    assert _seen(watch, 1030.0, joined={RUNNING.token: "ray-1"}).ready_at == 1020.0


def test_a_node_that_dropped_out_of_the_ray_cluster_is_to_be_left() -> None:
    watch = Watch()
    _seen(watch, 1010.0, joined={RUNNING.token: "ray-1"})
    assert _seen(watch, 1010.0 + LEFT_S - 1).leaving_at is None
    assert _seen(watch, 1010.0 + LEFT_S).leaving_at == 1010.0 + LEFT_S


def test_a_node_that_never_joins_is_given_up() -> None:
    watch = Watch()
    _seen(watch, 1010.0)
    assert _seen(watch, 1009.0 + JOIN_S).leaving_at is None
    assert _seen(watch, 1010.0 + JOIN_S).leaving_at is not None


@pytest.mark.parametrize("state", ["shutting-down", "stopping", "stopped"])
def test_an_instance_that_goes_down_is_left_but_charged_for_until_it_is_gone(state: str) -> None:
    watch = Watch()
    node = _seen(watch, 1050.0, replace(RUNNING, state=state))
    assert (node.leaving_at, node.gone_at) == (1050.0, None)
    gone = _seen(watch, 1080.0, replace(RUNNING, state="terminated"))
    assert gone.gone_at == 1050.0, "when it was first seen to go, as AWS has not said"
    told = _seen(watch, 1090.0, replace(RUNNING, state="terminated", ended=1045.0))
    assert told.gone_at == 1045.0


def test_times_of_aws_are_told_in_the_services_time() -> None:
    moment = Moment(now=5000.0, wall=1100.0, joined={}, marked={})
    node = Watch().seen(RUNNING, moment, gpus=4, prices=[(1000.0, 1.0)])
    assert node.billed_from == 4900.0
    assert moment.at(1200.0) == 5000.0, "nothing has begun in the future"


def test_on_demand_the_first_type_is_asked_for_in_all_zones_before_the_next() -> None:
    request = shapes.fleet(SETTINGS, OWNER, "T4", token=f"{OWNER}-7", attempt=0, template={})
    overrides = request["LaunchTemplateConfigs"][0]["Overrides"]
    assert [(o["InstanceType"], o["SubnetId"], o["Priority"]) for o in overrides] == [
        ("g4dn.12xlarge", "subnet-a", 0.0),
        ("g4dn.12xlarge", "subnet-b", 0.0),
        ("g4dn.metal", "subnet-a", 1.0),
        ("g4dn.metal", "subnet-b", 1.0),
    ]


@given(st.text(max_size=30), st.text(max_size=30), st.integers(0, 3))
def test_a_client_token_is_one_that_aws_takes_and_the_same_only_for_the_same(
    first: str, second: str, attempt: int
) -> None:
    def token(name: str, attempt: int) -> str:
        made = shapes.fleet(SETTINGS, OWNER, "T4", token=name, attempt=attempt, template={})
        return str(made["ClientToken"])

    assert token(first, attempt).isalnum()
    assert len(token(first, attempt)) <= 64
    assert token(first, attempt) != token(first, attempt + 1)
    assert (token(first, attempt) == token(second, attempt)) == (first == second)


def test_no_tag_of_a_user_replaces_one_of_ours() -> None:
    settings = replace(SETTINGS, tags={"team": "vision", "Name": "mine"})
    found = {t["Key"]: t["Value"] for t in shapes.tags(settings, OWNER, "T4", f"{OWNER}-7")}
    assert found == {
        "team": "vision",
        "Name": f"boa T4 {OWNER}-7",
        "boa:owner": OWNER,
        "boa:gpu": "T4",
        "boa:token": f"{OWNER}-7",
    }


def test_names_that_aws_does_not_take_are_told_apart() -> None:
    assert shapes.template_name(OWNER, "T4") == f"{OWNER}-T4"
    odd = {shapes.template_name(OWNER, name) for name in ("A100 80GB", "A100-80GB", "A100/80GB")}
    assert len(odd) == 3
    assert not any(" " in name or "/" in name for name in odd)


def test_a_template_is_known_by_what_it_says() -> None:
    data = shapes.template_data(SETTINGS, OWNER, T4)
    other = shapes.template_data(replace(SETTINGS, setup="echo"), OWNER, T4)
    assert shapes.contents(data) == shapes.contents(dict(reversed(data.items())))
    assert shapes.contents(data) != shapes.contents(other)


def test_an_error_says_what_to_mend() -> None:
    assert "mend aws.image" in str(AwsFailed("create_fleet", "InvalidAMIID.NotFound", "no image"))
    assert "IAM policy" in str(AwsFailed("create_fleet", "UnauthorizedOperation", "not you"))
