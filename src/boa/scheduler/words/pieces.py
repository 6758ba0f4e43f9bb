"""Pieces that sentences are made of; those that name something say so."""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from boa.model.cluster import JobId, NodeId
from boa.model.events import EventKind
from boa.scheduler.words.amounts import seconds
from boa.units import Seconds


class Part(NamedTuple):
    """A piece of a sentence, and what it names."""

    text: str
    job: JobId | None = None
    node: NodeId | None = None
    seconds: Seconds | None = None


class About(NamedTuple):
    kind: EventKind
    job: JobId | None
    node: NodeId | None


Words: TypeAlias = Iterator[str | Part]


def job(about: About) -> Part:
    return Part(f"job {about.job}", job=about.job)


def named(about: About, name: str) -> Words:
    yield job(about)
    yield f" ({name})"


def node(about: About) -> Part:
    return Part(f"node {about.node}", node=about.node)


def worded(value: Seconds) -> Part:
    return Part(seconds(value), seconds=value)


time = worded
