"""Commands for a run's actors, made from what they say of their nodes. All pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from boa._version import __version__
from boa.engines import launching
from boa.model.runs import Launch, NodeSlots

Answer: TypeAlias = Mapping[str, Any]
"""See `Rank.prepare`."""


def problem(launch: Launch, answers: Sequence[Answer], here: str) -> str:
    """Why they cannot run this; empty if they can. `here`: the name of the service's machine."""
    url = launch.env.get("BOA_REPORT_URL", "")
    for answer in answers:
        where = f"node {answer['host']} ({answer['ip']})"
        if answer["version"] != __version__:
            return (
                f"{where} has boa-constrictor {answer['version']}, the service {__version__}: "
                "install the same on both"
            )
        if not answer["shared"]:
            return (
                f"{where} does not see what the service writes to {launch.checkpoint_dir}: set "
                "checkpoint_dir to a folder that all nodes and the service share"
            )
        if answer["host"] != here and _is_loopback(urlsplit(url).hostname or ""):
            return (
                f"{where} cannot report to {url}, which is that machine itself: set host and url "
                "of the service to what other machines reach it by"
            )
    return ""


def plans(launch: Launch, answers: Sequence[Answer]) -> list[tuple[int, launching.ProcessPlan]]:
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


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"
