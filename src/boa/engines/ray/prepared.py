"""What the actors of a run say of their nodes → what each of them is to run. All pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from boa._version import __version__
from boa.engines import launching
from boa.engines.base import Launch, NodeSlots

Answer: TypeAlias = Mapping[str, Any]
"""See `Rank.prepare`."""


def problem(answers: Sequence[Answer], checkpoint_dir: str) -> str:
    """Why they cannot run this; empty if they can."""
    for answer in answers:
        where = f"node {answer['host']} ({answer['ip']})"
        if answer["version"] != __version__:
            return (
                f"{where} has boa-constrictor {answer['version']}, the service {__version__}: "
                "install the same on both"
            )
        if not answer["shared"]:
            return (
                f"{where} does not see what the service writes to {checkpoint_dir}: set "
                "checkpoint_dir to a folder that all nodes and the service share"
            )
    return ""


def plans(launch: Launch, answers: Sequence[Answer]) -> list[tuple[int, launching.Plan]]:
    """Numbers of actors that have a command to run, and what: ranks follow each other on a node."""
    nodes = [answer["node"] for answer in answers]
    order = sorted(range(len(nodes)), key=lambda number: (nodes.index(nodes[number]), number))
    gpus: dict[str, list[str]] = defaultdict(list)
    for number in order:
        gpus[nodes[number]] += answers[number]["gpus"]
    slots = (
        NodeSlots(index, tuple(range(len(names))), node)
        for index, (node, names) in enumerate(gpus.items())
    )
    first = answers[order[0]]
    found = launching.plans(
        replace(launch, slots=tuple(slots)),
        port=first["port"],
        gpus=first["has_gpus"],
        master=first["ip"],
        devices=list(gpus.values()),
        environment=first["environment"],
    )
    return [(order[plan["rank"]], plan) for plan in found]
