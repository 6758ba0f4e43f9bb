"""Names and labels of what is ours in a cluster. Pure."""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from boa.model.kubernetes_names import DOMAIN, OWNER
from boa.model.runs import RunKey

JOB, ATTEMPT, NODE = (f"{DOMAIN}/{name}" for name in ("job", "attempt", "node"))
"""Labels."""
LAUNCH, GO = f"{DOMAIN}/launch", f"{DOMAIN}/go"
"""Annotations: the run, to be found again by; the address of its first pod, once all are up."""
FINALIZER = f"{DOMAIN}/outcome"
"""Keeps a pod, and with it how it ended, until that is written down."""
CODE = "boa.zip"
LONGEST = 63
"""Characters of a label's value, and of a pod's name that is its host's too."""
_ODD = re.compile(r"[^a-z0-9-]+")
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One pod of a run: its share of the GPUs of one node."""

    name: str
    node: str
    """The node's name in the cluster."""
    label: str
    """The node's, as the service counts."""
    gpus: int
    ranks: tuple[int, ...]
    """Workers that it runs, and that have logs; none: it holds GPUs for another's."""


def pod_name(owner: str, key: RunKey, node: str) -> str:
    """The key by which a second start of a run finds the first."""
    return _name(owner, key.job, str(key.attempt), node)


def secret_names(owner: str, key: RunKey, tag: str, pieces: int) -> list[str]:
    """Secrets of one start of a run: its launch, then the pieces of its package."""
    words = owner, key.job, str(key.attempt), tag
    return [_name(*words), *(_name(*words, str(number)) for number in range(pieces))]


def labels(owner: str, key: RunKey) -> dict[str, str]:
    return {OWNER: owner, JOB: value(key.job), ATTEMPT: str(key.attempt)}


def value(text: str) -> str:
    """A label's: the text itself where it can be."""
    return text if _VALUE.fullmatch(text) else _name(text)


def _name(*words: str) -> str:
    """One that a pod may have. What must be changed or cut has a number for the rest."""
    plain = "-".join(words)
    name = _ODD.sub("-", plain.lower()).strip("-")
    if name == plain and len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 9].strip('-') or 'boa'}-{zlib.crc32(plain.encode()):08x}"


def selector(owner: str, jobs: Iterable[str] = ()) -> str:
    """A selector of pods of our runs; of these jobs alone, if any are named."""
    named = ",".join(sorted(value(job) for job in jobs))
    return f"{OWNER}={owner}," + (f"{JOB} in ({named})" if named else JOB)
