"""The process of a cluster's fake nodes: python -m kube.fake '{"server": …}'

Lines of JSON come in: {"do": "start", "name", "gpus", "labels", "taints", …},
{"do": "kill", "name"}. The end of its standard input is that of all nodes.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from kube.fake.client import Client
from kube.fake.host import Host
from kube.fake.node import Node, Shape
from kube.fake.values import Object


class FakeNodes:
    """By their names."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._client = Client(told["server"], told["authority"], tuple(told["client"]))
        self._folder = Path(told["folder"])
        self._host = Host(self._folder, self._client, told["server"], tuple(told["serving"]))
        self._nodes: dict[str, Node] = {}
        self._seen: dict[str, str] = {}
        """The pods' nodes, by uid."""

    async def answer(self, line: bytes) -> Any:
        asked = json.loads(line)
        match asked.pop("do"):
            case "start":
                shape = Shape(**asked)
                if shape.name in self._nodes:
                    raise ValueError(f"{shape.name} is there already")
                node = Node(shape, self._host, self._client, self._folder / "nodes" / shape.name)
                await node.start()
                self._nodes[shape.name] = node
                return node.name
            case "kill":
                node_or_none = self._nodes.pop(asked["name"], None)
                if node_or_none is not None:
                    node_or_none.die()
                return node_or_none is not None
            case what:
                raise ValueError(f"no such thing to do: {what}")

    async def watch(self) -> None:
        """Pods that are bound to nodes of ours."""
        selected = {"fieldSelector": "spec.nodeName!="}
        async for kind, what in self._client.watch("/api/v1/pods", **selected):
            if kind == "ALL":
                there = {pod["metadata"]["uid"] for pod in what}
                for node in self._nodes.values():
                    for uid in node.uids():
                        if uid not in there:
                            node.gone(uid)
                for pod in what:
                    self._see(pod)
            elif kind == "DELETED":
                if node_or_none := self._nodes.get(what["spec"]["nodeName"]):
                    node_or_none.gone(what["metadata"]["uid"])
            else:
                self._see(what)

    def _see(self, pod: Object) -> None:
        if node := self._nodes.get(pod["spec"]["nodeName"]):
            node.see(pod)

    def die(self) -> None:
        for node in self._nodes.values():
            node.die()


async def _questions(nodes: FakeNodes) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        try:
            said = {"answer": await nodes.answer(line)}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


async def _main() -> None:
    nodes = FakeNodes(json.loads(sys.argv[1]))
    todo = [asyncio.create_task(one) for one in (_questions(nodes), nodes.watch())]
    done, _ = await asyncio.wait(todo, return_when=asyncio.FIRST_COMPLETED)
    nodes.die()
    for task in done:
        task.result()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        asyncio.run(_main())
