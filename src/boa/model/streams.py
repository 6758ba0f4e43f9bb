"""Streams: jobs of one class that one part of a budget pays for.

Where parts name users or teams, jobs of one class may have several payers. Plans, prices and the
ledger are by stream; what is learned of speeds and work is the class's, whoever pays. A class whose
payer follows from its name alone is a stream of the same name.
"""

from collections.abc import Iterable

_PAID_BY = "@"
"""No class has it in its name."""


def stream_of(job_class: str, payer: str) -> str:
    return f"{job_class}{_PAID_BY}{payer}" if payer else job_class


def class_of(stream: str) -> str:
    return stream.partition(_PAID_BY)[0]


def payer_in(stream: str) -> str:
    """The payer that it names; empty: its class says who pays."""
    return stream.partition(_PAID_BY)[2]


def classes_of(streams: Iterable[str]) -> list[str]:
    """Classes of them, each once, in this order."""
    return list(dict.fromkeys(map(class_of, streams)))
