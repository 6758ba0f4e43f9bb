"""Limits on what clients may take of the server, and the descriptors that there are for it.

uvicorn has none of its own on silent or slow clients: a connection that never asks anything stays.
"""

import resource
from dataclasses import dataclass, replace

from boa.units import Seconds

MOST_DESCRIPTORS = 16_384
"""As many are asked for at the start: jobs inherit it, and some programs walk through all of them.
"""
KEPT_DESCRIPTORS = 256
"""Descriptors that no client can take: the store, logs, processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Defaults leave room for thousands of jobs that report and hundreds of open pages."""

    connections: int = 4096
    per_address: int = 3072
    """Most of them: jobs of the local engine, and all that a proxy passes on, have one address."""
    streams: int = 1000
    """Answers that go on: events, what pages watch, logs. Each may hold a file too."""
    head_bytes: int = 32 * 1024
    head_s: Seconds = 10.0
    """Until a request's head is complete, from the connection's beginning or the last answer."""
    body_bytes: int = 16 * 1024**2
    """No route takes more; most take less."""
    body_s: Seconds = 30.0
    idle_s: int = 5
    """Between an answer and the next request."""
    taking_s: Seconds = 30.0
    """A client that takes nothing of its answer for so long is dropped."""

    def within(self, descriptors: int) -> "Limits":
        """The same, or less where there are too few descriptors for all of it."""
        free = max(descriptors - KEPT_DESCRIPTORS, descriptors // 2)
        connections = min(self.connections, max(free * 2 // 3, 1))
        return replace(
            self,
            connections=connections,
            per_address=min(self.per_address, max(connections * 3 // 4, 1)),
            streams=min(self.streams, max(free // 3, 1)),
        )


def raise_descriptors(most: int = MOST_DESCRIPTORS) -> int:
    """Raise this process's own limit as far as it may, and tell what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if wanted > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # some systems allow less than they say
            return soft
    return max(soft, wanted)
