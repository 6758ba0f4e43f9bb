"""The protocol of engines, which start and stop jobs for real. Repeating any call is harmless."""

from collections.abc import Collection, Sequence
from typing import Protocol

from boa.model.cluster import JobId
from boa.model.runs import Launch, LogFile, RunEvent, RunKey
from boa.units import Seconds


class NotOver(Exception):
    """A job cannot be started yet: something of an earlier run of its is still there. Says what."""


class Engine(Protocol):
    """Every call returns soon. Safe to call from one thread; logs from any.

    That thread is to last until `close`: with it ends what an engine keeps for itself.
    """

    def start(self, launch: Launch) -> None:
        """Start a run; of a run that was started before, nothing. What fails is an ended event.

        Raises NotOver where the job would run twice at once. To be asked again.
        """
        ...

    def stop(self, key: RunKey, grace_s: Seconds, then: Launch | None = None) -> None:
        """SIGTERM to all its processes; SIGKILL after the grace time (seconds of the wall).

        `then`: the run of the job that is to follow, as it looks now. An engine may prepare it
        first, for a moment, while this one goes on."""
        ...

    def poll(self) -> Sequence[RunEvent]:
        """Events since the last call. An end is told again until `forget`."""
        ...

    def runs(self) -> Collection[RunKey]:
        """All runs not forgotten: after a crash of the service, what is still there."""
        ...

    def forget(self, key: RunKey) -> None:
        """The end of this run has been written down."""
        ...

    def logs(self, job: JobId) -> Sequence[LogFile]:
        """Log files of a job, oldest first: all attempts, all workers."""
        ...

    def close(self) -> None:
        """Let go; runs go on."""
        ...
