"""What AWS would be sent, word for word: golden files in tests/data/aws.

Ids that differ from run to run are replaced by their kind. After a wanted change, look at the
difference that `BOA_GOLDEN=write pytest tests/integration/test_aws_shapes.py` makes.
"""

import base64
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aws_faults import Layer, Params
from aws_server import T4, Aws, moto_server

GOLDEN = Path(__file__).resolve().parent.parent / "data" / "aws"
IDS = re.compile(r"\b(i|lt|sg|ami|subnet)-[0-9a-f]{8,}\b")
HASHES = {
    "CreateFleet": (),
    "CreateLaunchTemplate": ("ClientToken", "VersionDescription"),
    "CreateLaunchTemplateVersion": ("ClientToken", "VersionDescription"),
}
"""What is made of ids, or of luck."""
OWNER = "boa-shapes"


@pytest.fixture(scope="module")
def sent() -> Iterator[Layer]:
    """All that a service asks in its life: rents, looks, gives back, has its settings changed."""
    with moto_server() as layer:
        _live(Aws(layer, owner=OWNER))
        yield layer


def _live(aws: Aws) -> None:
    zone = next(iter(aws.zones.values()))
    aws.sky.prices = {("g4dn.12xlarge", zone): [(aws.clock.now() - 60.0, 2.0)]}
    settings = replace(
        aws.settings,
        key_name="admin",
        instance_profile="node",
        tags={"team": "vision"},
        setup="source /opt/ray/bin/activate",
    )
    cloud = aws.cloud(settings=settings)
    cloud.rent(f"{OWNER}-db-1", "A100")
    spot = aws.cloud(
        settings=replace(settings, setup=""),
        gpu_types={"T4": T4},
        unpriced=frozenset({"T4"}),
        spot=True,
    )
    spot.rent(f"{OWNER}-db-2", "T4")
    cloud.rent(f"{OWNER}-db-3", "T4")
    spot.nodes()
    cloud.release(f"{OWNER}-db-1")


def _plain(action: str, params: Params) -> Params:
    skipped = ("Action", "Version")
    plain = {k: IDS.sub(r"(\1)", v) for k, v in params.items() if k not in skipped}
    plain |= {k: f"({k})" for k in HASHES.get(action, ()) if k in plain}
    if "LaunchTemplateData.UserData" in plain:
        plain["LaunchTemplateData.UserData"] = "(the script)"
    return dict(sorted(plain.items()))


@pytest.mark.parametrize(
    "action",
    [
        "CreateFleet",
        "CreateLaunchTemplate",
        "CreateLaunchTemplateVersion",
        "DeleteLaunchTemplate",
        "DescribeInstances",
        "DescribeSpotInstanceRequests",
        "DescribeSpotPriceHistory",
        "TerminateInstances",
    ],
)
def test_aws_is_sent_what_is_in_the_golden_file(sent: Layer, action: str) -> None:
    found: list[Params] = []
    for params in sent.sky.asked(action):
        plain = _plain(action, params)
        if plain not in found:
            found.append(plain)
    path = GOLDEN / f"{action}.json"
    if os.environ.get("BOA_GOLDEN") == "write":
        path.write_text(json.dumps(found, indent=2) + "\n")
    assert found == json.loads(path.read_text())


def test_nothing_else_is_ever_changed_at_aws(sent: Layer) -> None:
    reading = ("Describe", "Get")
    changing = {action for action, _ in sent.sky.requests if not action.startswith(reading)}
    assert changing == {
        "CreateFleet",
        "CreateLaunchTemplate",
        "CreateLaunchTemplateVersion",
        "DeleteLaunchTemplate",
        "TerminateInstances",
    }


def test_the_template_carries_the_script(sent: Layer) -> None:
    key = "LaunchTemplateData.UserData"
    texts = [base64.b64decode(p[key]).decode() for p in sent.sky.asked("CreateLaunchTemplate")]
    assert all(text.startswith("#!/bin/bash\n") for text in texts)
    assert "--resources='{\"A100\": 8}'" in texts[0]
    assert "setup='source /opt/ray/bin/activate'" in texts[0]
