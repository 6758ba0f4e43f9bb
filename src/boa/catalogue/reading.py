"""How a trace is read: which part of it, how dense, and how a log's jobs become elastic."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from boa.catalogue.elastic_jobs import RECIPES, RecipeName
from boa.errors import InputError
from boa.model.trace import Trace
from boa.units import SECONDS_PER_HOUR

MAX_FACTOR = 1e6
FACTOR_EXPECTED = f"a number above 0, at most {MAX_FACTOR:,.0f}, such as 10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Without anything said, the whole trace as it stands in its file."""

    from_h: float = 0.0
    """Hours of the trace that are skipped; arrivals then count from there."""
    hours: float | None = None
    """Hours of the trace that are read; None: all that follow."""
    rate_factor: float = 1.0
    """Times as many arrivals per hour: all times between them are divided by it."""
    recipe: RecipeName = "sia"
    """How jobs of a log, of which only the sizes are known, become elastic."""
    seed: int = 0
    """The seed of what that draws."""
    profiles: Path | None = None
    """Measurements that say what users would ask for; None: the catalogue's figures do."""

    def __post_init__(self) -> None:
        if not 0 <= self.from_h < math.inf:
            raise InputError("from_h", self.from_h, "a finite number of hours >= 0")
        if self.hours is not None and not 0 < self.hours < math.inf:
            raise InputError("hours", self.hours, "a finite number of hours > 0")
        if not 0 < self.rate_factor <= MAX_FACTOR:
            raise InputError("rate_factor", self.rate_factor, FACTOR_EXPECTED)
        if self.recipe not in RECIPES:
            raise InputError("recipe", self.recipe, f"one of {', '.join(RECIPES)}")

    def part_of(self, trace: Trace) -> Trace:
        """The stretch that is asked for, then its gaps shortened."""
        if self.from_h > 0 or self.hours is not None:
            trace = self._stretch(trace)
        return trace if self.rate_factor == 1.0 else trace.denser(self.rate_factor)

    def _stretch(self, trace: Trace) -> Trace:
        start = self.from_h * SECONDS_PER_HOUR
        length = math.inf if self.hours is None else self.hours * SECONDS_PER_HOUR
        part = trace.between(start, start + length)
        if part.jobs:
            return part
        later = [job.arrival_s / SECONDS_PER_HOUR for job in trace.jobs if job.arrival_s >= start]
        if later:
            wanted = f"more hours: the next job arrives {min(later) - self.from_h:.4g} h later"
            raise InputError("hours", self.hours, wanted)
        last = trace.span_s / SECONDS_PER_HOUR
        raise InputError("from_h", self.from_h, f"an hour of the trace; its last is {last:.4g}")

    def flags(self) -> Iterator[str]:
        """The options that say so, where they are not the usual ones."""
        if self.from_h > 0:
            yield f"--from-h {self.from_h:g}"
        if self.hours is not None:
            yield f"--hours {self.hours:g}"
        if self.rate_factor != 1.0:
            yield f"--rate-factor {self.rate_factor:g}"
        if self.recipe != "sia":
            yield f"--recipe {self.recipe}"
        if self.seed:
            yield f"--seed {self.seed}"


WHOLE = Reading()
