"""Ray's own fake provider, slower, and with a diary. Ray's autoscaler imports it by name.

`type: fake_multinode` cannot be used: it reads an `example.yaml` that Ray's wheel does not contain.
"""

import json
import time
from pathlib import Path
from typing import Any

from ray.autoscaler._private.fake_multi_node.node_provider import FakeMultiNodeProvider
from ray.autoscaler.tags import TAG_RAY_USER_NODE_TYPE


class DiaryProvider(FakeMultiNodeProvider):  # type: ignore[misc]
    """`diary`: a line of JSON for every node launched and terminated.

    A launch takes `launch_delay_s` before its processes start, as a machine boots.
    """

    def __init__(self, provider_config: dict[str, Any], cluster_name: str) -> None:
        super().__init__(provider_config, cluster_name)
        self._diary = Path(provider_config["diary"])
        self._delay_s = float(provider_config["launch_delay_s"])

    def create_node_with_resources_and_labels(
        self,
        node_config: Any,
        tags: dict[str, str],
        count: int,
        resources: dict[str, float],
        labels: dict[str, str],
    ) -> None:
        asked = time.time()
        time.sleep(self._delay_s)  # the autoscaler calls from a thread for every launch
        for _ in range(count):  # one after the other: Ray's provider waits until a node is up
            with self.lock:
                self._create_node_with_resources_and_labels(node_config, tags, 1, resources, labels)
                node = next(reversed(self._nodes))
            kind = tags[TAG_RAY_USER_NODE_TYPE]
            self._write(node=node, kind=kind, event="launch", at=asked, up_at=time.time())

    def terminate_node(self, node_id: str) -> None:
        super().terminate_node(node_id)
        self._write(node=node_id, event="terminate", at=time.time())

    def _write(self, **line: object) -> None:
        with self.lock, self._diary.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
