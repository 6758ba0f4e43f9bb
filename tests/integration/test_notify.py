"""A real service: a job that fails is told of by a webhook, and its runs stand apart in its log."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from boa.client.spawn import OwnService
from boa.server.notify.post import signature
from receivers import web_server

TWICE = (
    'echo "run $BOA_ATTEMPT of $RANK"; '
    '[ "$BOA_ATTEMPT" -gt 1 ] || { echo "ValueError: no"; exit 3; }'
)
PATIENCE_S = 300.0


def boa(own: OwnService, *words: str) -> str:
    env = {**os.environ, "BOA_SERVER": own.url}
    asked = [sys.executable, "-m", "boa", *words]
    return subprocess.run(asked, env=env, capture_output=True, text=True, timeout=300).stdout


def test_an_end_reaches_a_webhook_signed_and_a_log_has_its_runs_apart(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("a key that both know\n")
    key.chmod(0o600)
    with web_server() as posts:
        config: dict[str, Any] = {
            "budget_per_hour": 8.0,
            "speed": 60.0,
            "gpu_types": {"T4": {"price": 1.0, "gpus_per_node": 1, "max_nodes": 1}},
            "local": {"provision_s": 0, "release_s": 0},
            "notify": {
                "ops": {
                    "kind": "webhook",
                    "url": posts.url,
                    "key_file": str(key),
                    "tell": ["ended"],
                }
            },
        }
        job = {"class": "twice", "run": ["sh", "-c", TWICE], "launcher": "workers", "retries": 2}
        with OwnService(tmp_path / "service", config) as own, own.client() as client:
            ended = client.wait(client.submit(job)["id"])
            assert ended["state"] == "succeeded"
            assert posts.arrived.acquire(timeout=PATIENCE_S)
            assert [t["signed"] for t in client.notify_targets()] == [True]
            (retry,) = [e for e in client.history(job=ended["id"]) if e["kind"] == "retry"]
            assert retry["data"]["said"] == "ValueError: no"
            shown = boa(own, "logs", ended["id"])
            assert boa(own, "notify", "test", "ops") == "ops: delivered\n"
            assert boa(own, "logs", ended["id"], "--grep", "Value").count("ValueError") == 1
    _, headers, body = posts.got[0]
    assert headers["boa-signature"] == signature(
        "a key that both know", headers["boa-timestamp"], body
    )
    assert json.loads(body)["data"]["state"] == "succeeded"
    stamps = re.findall(
        r"^── attempt (\d) · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d ──$", shown, re.MULTILINE
    )
    assert stamps == ["1", "2"]
    assert "run 1 of 0\nValueError: no\n── attempt 2" in shown
