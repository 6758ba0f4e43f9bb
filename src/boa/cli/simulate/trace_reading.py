"""Options that say how a trace is read: which part, how dense, and what a log's jobs become."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from boa.cli import options, parsers, shell
from boa.cli.console import note, working
from boa.errors import InputError

if TYPE_CHECKING:
    from boa.catalogue.reading import Reading
    from boa.model.trace import Trace

RECIPE_NAMES = ("sia", "pollux")
"""As in `boa.catalogue.elastic_jobs`, which takes a while to import."""


def _factor(text: Any) -> float:
    from boa.catalogue.reading import FACTOR_EXPECTED, MAX_FACTOR

    return parsers.between("--rate-factor", 0, MAX_FACTOR, FACTOR_EXPECTED, above=True)(text)


def times_the_rate(help: str) -> shell.Option:
    return shell.Option("--rate-factor", metavar="X", parser=_factor, help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """Stretch of the trace, and the draw of jobs from a log that tells only their sizes."""

    from_h: Annotated[
        float,
        shell.Option(
            "--from-h",
            metavar="H",
            parser=parsers.number("--from-h", "a finite number of hours >= 0", zero=True),
            help="Skip so many hours of the trace; arrivals then count from there.",
        ),
    ] = 0.0
    hours: Annotated[
        float | None,
        shell.Option(
            "--hours",
            metavar="H",
            parser=parsers.number("--hours", "a finite number of hours > 0, such as 48"),
            help="Only so many hours of the trace.",
        ),
    ] = None
    rate_factor: Annotated[
        float,
        times_the_rate("Times as many jobs per hour: gaps between arrivals are divided by it."),
    ] = 1.0
    recipe: Annotated[
        Literal["sia", "pollux"],
        options.choice(
            "--recipe",
            RECIPE_NAMES,
            "Models that jobs of a log become, by their GPU-hours. pollux: half of the small ones "
            "are NeuMF.",
        ),
    ] = "sia"
    seed: Annotated[int, options.seed("Of that draw: the same seed, the same jobs.")] = 0

    def reading(self, profiles: Path | None = None) -> "Reading":
        from boa.catalogue.reading import Reading

        return Reading(
            from_h=self.from_h,
            hours=self.hours,
            rate_factor=self.rate_factor,
            recipe=self.recipe,
            seed=self.seed,
            profiles=profiles,
        )

    def read(self, trace: Path, profiles: Path | None = None) -> "Trace":
        from boa.catalogue.traces import read_trace

        with working("reading the trace"), naming_reading_flags():
            return read_trace(trace, self.reading(profiles))


@contextmanager
def naming_reading_flags() -> Iterator[None]:
    """Errors of `Reading`, in the words of the command line."""
    try:
        yield
    except InputError as wrong:
        flag = {"from_h": "--from-h", "hours": "--hours"}.get(wrong.field)
        if flag is None:
            raise
        raise InputError(flag, wrong.value, wrong.expected) from None


def note_drawn(trace: "Trace") -> None:
    """Tell what the trace itself does not say: that a log's jobs were drawn, and which were not."""
    if trace.drawn is None:
        return
    from boa.catalogue.elastic_jobs import SIZES_LEFT_OUT

    recipe, left_out = trace.drawn.recipe.capitalize(), trace.drawn.left_out
    fewer = f"; {left_out:,} of the log left out, {SIZES_LEFT_OUT}" if left_out else ""
    note(f"models drawn by {recipe}'s recipe, seed {trace.drawn.seed}{fewer}")
