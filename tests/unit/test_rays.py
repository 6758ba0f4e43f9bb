"""The Ray clusters that tests and benches start: nothing in them is left to who comes first."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ray._private.parameter import RayParams
from ray.autoscaler.tags import TAG_RAY_USER_NODE_TYPE

import _rays_head
from _rays_provider import DiaryProvider


class SlowNode:
    """Ray's node, which takes its time to come up; says how many did so at once."""

    starting, most = 0, 0
    _lock = threading.Lock()

    def __init__(self, *_: Any, **__: Any) -> None:
        with self._lock:
            SlowNode.starting += 1
            SlowNode.most = max(SlowNode.most, SlowNode.starting)
        time.sleep(0.02)
        with self._lock:
            SlowNode.starting -= 1


def test_a_head_is_given_no_port_that_another_may_have() -> None:
    params = RayParams(**_rays_head.HEAD)
    params.update_pre_selected_port()
    assert params.reserved_ports == {0}


def test_nodes_that_are_launched_at_once_start_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray's own start of a node does not stand another one beside it in the same process."""
    monkeypatch.setenv("RAY_FAKE_CLUSTER", "1")
    monkeypatch.setattr("ray._private.node.Node", SlowNode)
    config = {"diary": str(tmp_path / "diary"), "launch_delay_s": 0.0, "gcs_address": "127.0.0.2:1"}
    provider = DiaryProvider(config, "boa")

    def launch(kind: str) -> None:
        tags = {TAG_RAY_USER_NODE_TYPE: kind}
        provider.create_node_with_resources_and_labels({}, tags, 2, {"GPU": 1}, {})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(launch, ["T4", "A100", "T4", "A100"]))
    assert len((tmp_path / "diary").read_text().splitlines()) == 8
    assert SlowNode.most == 1
