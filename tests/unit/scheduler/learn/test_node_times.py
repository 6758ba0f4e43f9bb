"""What nodes take to get ready and to be gone is learned from those that did."""

from dataclasses import replace

import pytest

from boa.model.records import NodeRecord
from boa.scheduler.learn.node_times import NodeTimes


def test_boots_and_reclamations_are_learned_by_gpu_type() -> None:
    node = NodeRecord(id=1, token="t-1", gpu="T4", gpus=4, price=1.0, requested_at=100.0)
    times = NodeTimes(boot_s=120.0, reclaim_s=30.0)
    assert times.boots(["T4", "A100"]) == {"T4": 120.0, "A100": 120.0}
    ready = replace(node, state="ready", ready_at=180.0)
    times.learn([ready])
    times.learn([ready])
    assert 80.0 < times.boots(["T4"])["T4"] < 120.0
    once = times.boots(["T4", "A100"])
    gone = replace(ready, state="gone", released_at=500.0, gone_at=590.0)
    times.learn([gone])
    assert times.boots(["T4", "A100"]) == once, "a node boots once"
    assert 30.0 < times.reclaims(["T4"])["T4"] < 90.0
    for n in range(2, 200):
        times.learn([replace(ready, id=n)])
    assert times.boots(["T4"])["T4"] == pytest.approx(80.0, rel=1e-3)
