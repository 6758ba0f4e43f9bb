"""State that ranks have left with a keeper, and what it knows of getting it to the disk."""

import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

if __package__:
    from boa.train.keeper.messages import Message
else:
    from messages import Message  # type: ignore[import-not-found, no-redef]


@dataclass(eq=False)
class Generation:
    """State that ranks have left, until it is on the disk or followed by another."""

    command: tuple[str, ...] = ()
    """The command that writes it to the disk."""
    env: dict[str, str] = field(default_factory=dict)
    writing: "subprocess.Popen[bytes] | None" = None
    try_at: float = 0.0
    asked_at: float = 0.0
    """When it was to be written, for the first time."""
    look_at: float = 0.0
    """When to see whether it was published, if nobody here writes it."""
    pointer: str = ""
    """The file that speaks of it once it is published."""
    kept_by: set[socket.socket] = field(default_factory=set)
    """Ranks that have left a part and are there still: they may not have published it yet."""
    will: "tuple[socket.socket, Message] | None" = None
    """A rank, and what it would have said of writing, should it die before it says so."""

    def is_lost(self, name: str, now: float, again_s: float) -> bool:
        """Whether nobody writes it, and no file speaks of it: who left it died before. The file is
        looked at every so often."""
        if self.command or self.kept_by or not self.pointer or now < self.look_at:
            return False
        self.look_at = now + again_s
        try:
            return name not in Path(self.pointer).read_text()
        except FileNotFoundError:
            return True
        except (OSError, ValueError):  # it may
            return False
