"""Holds by column, where there are too many for a record each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ids: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Holds by column: there can be millions."""

    streams: Sequence[str]
    """Classes, with who pays for them, each once …"""
    which: Ids
    """… and the place among them of each hold's."""
    job: Ids
    """Numbers of jobs."""
    node: Ids
    gpus: Floats
    since: Floats
    until: Floats
    """Infinity: still held."""

    @property
    def stream(self) -> list[str]:
        """The stream of each hold."""
        return [self.streams[place] for place in self.which.tolist()]
