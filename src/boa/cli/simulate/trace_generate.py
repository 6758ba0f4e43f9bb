"""`boa trace generate`: synthetic traces, drawn from a mix or from another trace."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import options, parsers, shell
from boa.cli.console import check_writable, working
from boa.cli.options import Json
from boa.cli.simulate.trace_convert import tell_written, trace_output
from boa.cli.simulate.trace_reading import note_drawn, times_the_rate
from boa.errors import InputError, UsageError

if TYPE_CHECKING:
    from boa.catalogue.arrivals import TraceSpec
    from boa.model.trace import TraceJob

NEWTRACE_JOBS = 960
MOST_HOURS = 1e6
HOURS = f"hours above 0, at most {MOST_HOURS:,.0f}, such as 48"


def _mix(text: Any) -> dict[str, float]:
    expected = "a share above 0, at most 1e12, per application, such as cifar10=0.7,bert=0.3"
    read = parsers.between("--mix", 0, 1e12, expected, above=True)
    mix: dict[str, float] = {}
    for part in str(text).split(","):
        name, equals, share = part.partition("=")
        if not equals or not name.strip() or name.strip() in mix:
            raise InputError("--mix", text, "each application once, such as cifar10=0.7,bert=0.3")
        mix[name.strip()] = read(share)
    return mix


def _rate(text: Any) -> float:
    from boa.catalogue.arrivals import RATE_EXPECTED, check_rate

    return check_rate(parsers.number("--rate", RATE_EXPECTED)(text), "--rate")


def _cv2(text: Any) -> float:
    from boa.catalogue.arrivals import CV2_EXPECTED, check_cv2

    return check_cv2(parsers.number("--cv2", CV2_EXPECTED)(text), "--cv2")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalOptions:
    """Jobs that arrive: which, how many per hour and how evenly."""

    like: Annotated[
        Path | None,
        shell.Option(
            "--like",
            metavar="TRACE",
            help="Draw whole jobs from this trace; its rate and number of jobs, unless given.",
        ),
    ] = None
    mix: Annotated[
        Mapping[str, float] | None,
        shell.Option(
            "--mix",
            metavar="APP=SHARE,...",
            parser=_mix,
            help="Applications and their shares, in any unit. Without it those of newTrace.",
        ),
    ] = None
    rate: Annotated[
        float | None,
        shell.Option("--rate", metavar="JOBS/H", parser=_rate, help="Jobs per hour; 20."),
    ] = None
    rate_factor: Annotated[
        float, times_the_rate("Times that rate: 10 makes ten times as many jobs arrive per hour.")
    ] = 1.0
    jobs: Annotated[int | None, options.count("--jobs", "N", 1, "How many jobs; 960.")] = None
    hours: Annotated[
        float | None,
        shell.Option(
            "--hours",
            metavar="H",
            parser=parsers.between("--hours", 0, MOST_HOURS, HOURS, above=True),
            help="All jobs of so many hours, instead of a number of jobs.",
        ),
    ] = None
    cv2: Annotated[
        float,
        shell.Option(
            "--cv2",
            metavar="C2",
            parser=_cv2,
            help="Squared coefficient of variation of the times between arrivals. 1: Poisson. "
            "More: bursts, shorter and more intense as it grows (newTrace has 2.4 to 2.8).",
        ),
    ] = 1.0

    def check(self) -> None:
        """Options that exclude each other."""
        if self.like is not None and self.mix is not None:
            raise UsageError("--like and --mix both say which jobs arrive: give one of them")
        if self.jobs is not None and self.hours is not None:
            raise UsageError("--jobs and --hours both say how long the trace is: give one of them")

    def spec(self) -> "TraceSpec":
        """The trace to be drawn, `rate_factor` being part of its rate."""
        rate: Any = {} if self.rate is None else {"arrivals_per_hour": self.rate}
        found = self._of_mix(rate) if self.like is None else self._like(self.like, rate)
        try:
            return replace(found, arrivals_per_hour=found.arrivals_per_hour * self.rate_factor)
        except InputError as wrong:
            expected = f"a factor that leaves {wrong.expected}"
            raise InputError("--rate-factor", self.rate_factor, expected) from None

    def _of_mix(self, rate: Mapping[str, Any]) -> "TraceSpec":
        from boa.catalogue.arrivals import spec_of_mix

        chosen: Any = {} if self.mix is None else {"mix": self.mix}
        endless = self.jobs is None and self.hours is None
        jobs = NEWTRACE_JOBS if endless else self.jobs
        return spec_of_mix(**chosen, **rate, jobs=jobs, hours=self.hours, cv2=self.cv2)

    def _like(self, path: Path, rate: Mapping[str, Any]) -> "TraceSpec":
        from boa.catalogue.arrivals import spec_like
        from boa.catalogue.traces import read_trace

        with working("reading the trace"):
            read = read_trace(path)
        note_drawn(read)
        try:
            return spec_like(read, **rate, jobs=self.jobs, hours=self.hours, cv2=self.cv2)
        except InputError as wrong:
            raise wrong.inside(str(path)) from None


def generate(
    arrivals: ArrivalOptions,
    seed: Annotated[int, options.seed("The same, the same jobs.")] = 0,
    output: Annotated[
        Path | None,
        trace_output("Write the trace here (.csv, .parquet); without it, CSV to stdout."),
    ] = None,
    json: Json = False,
) -> None:
    """Draw a synthetic trace: a mix of jobs that arrive evenly or in bursts.

    The long-run rate is as asked whatever the burstiness. Jobs are written
    as they are drawn, so a trace may have any length.

    [bold]Examples[/bold]
    [dim]$[/dim] boa trace generate --cv2 2.65 -o bursty.csv
    [dim]$[/dim] boa trace generate --mix cifar10=0.7,bert=0.3 --rate 40 --hours 24
    [dim]$[/dim] boa trace generate --rate-factor 100 --hours 48 -o dense.csv
    [dim]$[/dim] boa trace generate --like sia.csv --jobs 1000000 -o long.parquet --json
    """
    arrivals.check()
    if json and output is None:
        raise UsageError("--json needs -o FILE: without it the trace itself goes to stdout")
    check_writable(output, "--output")
    _generate(arrivals.spec(), seed, output, json)


class _Tally:
    """Jobs on their way to a file: how many, and when the last arrived."""

    def __init__(self, jobs: "Iterable[TraceJob]") -> None:
        self._jobs = jobs
        self.count, self.span_s = 0, 0.0

    def __iter__(self) -> "Iterator[TraceJob]":
        for job in self._jobs:
            self.count += 1
            self.span_s = job.arrival_s
            yield job


def _generate(spec: "TraceSpec", seed: int, output: Path | None, json: bool) -> None:
    from boa.catalogue.arrivals import synthetic_jobs
    from boa.catalogue.traces import write_csv, write_trace

    if next(synthetic_jobs(spec, seed), None) is None:
        rate = f"at {spec.arrivals_per_hour:g} jobs per hour none arrives with this seed"
        raise InputError("--hours", spec.hours, f"more hours; {rate}")
    jobs = _Tally(synthetic_jobs(spec, seed))
    if output is None:
        write_csv(jobs, sys.stdout)
        return
    with working("drawing jobs"):
        write_trace(jobs, output)
    tell_written(output, jobs.count, jobs.span_s, json)
