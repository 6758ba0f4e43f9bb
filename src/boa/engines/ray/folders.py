"""The marker of a run on the service's disk."""

from dataclasses import dataclass, field
from pathlib import Path

from boa.engines.remote_folders import RemoteFolders


@dataclass(slots=True, kw_only=True)
class Marker:
    """All that it takes to find a run again."""

    tag: str = ""
    """The part of its names in the cluster that another start of the same run has otherwise."""
    nodes: list[str] = field(default_factory=list)
    """Ray's node id for every actor, once it is known."""
    leads: list[tuple[int, int]] = field(default_factory=list)
    """Actors that have a command to run, by number, and their ranks."""
    launched: bool = False
    token: str = ""
    """A file that it has left for its ranks to see, until they have."""


class Folders(RemoteFolders[Marker]):
    def __init__(self, root: Path) -> None:
        super().__init__(root, Marker)
