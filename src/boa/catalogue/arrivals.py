"""Synthetic traces: jobs drawn from a mix, arriving as evenly or in bursts as asked.

C² is the squared coefficient of variation of the times between arrivals. For C² = 1 arrivals are
Poisson. For C² > 1 they are a Poisson process that switches between a high and a low rate at
exponential times (a Markov-modulated Poisson process), which is how the paper makes its bursts:
the long-run rate stays, bursts become shorter and more intense. `Bursts.of` derives the process.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from boa.errors import InputError
from boa.model.speedup import Floats
from boa.model.trace import MICROSECONDS, Trace, TraceJob
from boa.units import SECONDS_PER_HOUR, PerHour

NEWTRACE_MIX: Mapping[str, float] = {
    "cifar10": 484,
    "deepspeech2": 226,
    "bert": 208,
    "yolov3": 36,
    "imagenet": 6,
}
"""Jobs per application in newTrace, workload-1 (Sia artifact, SOSP'23): 960 jobs."""
NEWTRACE_PER_HOUR = 20.0
MAX_CV2 = 10_000.0
"""Bursts then hold some 5,000 jobs; what is beyond is no arrival process but a batch."""
CV2_EXPECTED = f"a number from 1 (Poisson) to {MAX_CV2:,.0f} (bursts)"
MAX_PER_HOUR = 1e6
RATE_EXPECTED = f"jobs per hour, from {1 / MAX_PER_HOUR:g} to {MAX_PER_HOUR:,.0f}, such as 20"
CHUNK = 1 << 14
"""Jobs drawn at a time."""
POISSON = 1e-9
"""A C² this close to 1 is 1: both rates are 1 then, up to rounding."""
BURST_LENGTH = 6.0
"""Sets how long bursts last (see `Bursts.of`). At newTrace's own C² this also gives the variance
of newTrace's arrivals per 2 minutes to per 4 hours, within a third."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """A two-rate Poisson process, in units of its own long-run rate and mean time in between."""

    high: float
    low: float
    burst: float
    """Mean length of a stretch at the high rate."""
    lull: float
    """Mean length of a stretch at the low rate."""

    @classmethod
    def of(cls, cv2: float) -> "Bursts":
        """The process of long-run rate 1 whose times between arrivals have this C² > 1, exactly.

        With rates Λ = diag(h, l), generator Q, and π its stationary law, the phase just after an
        arrival is distributed as πΛ (the long-run rate πΛ1 is 1), and a time T between arrivals
        is phase-type with sub-generator Q − Λ. Since π(Λ − Q) = πΛ,

            E[T] = 1,   E[T²] = 2 πΛ (Λ − Q)⁻² 1 = 2 π (Λ − Q)⁻¹ 1 = 2 (σ + h + l − 1) / (hl + σ)

        where σ is the sum of both switching rates, so

            C² − 1 = 2 (h − 1)(1 − l) / (hl + σ).

        Bursts of mean length d end at rate 1/d, take up the share p = (1 − l)/(h − l) of time,
        and σ = (1/d)/(1 − p) = (h − l)/(d (h − 1)). For given h and d that is linear in l. Any
        l in (0, 1) will do, and l > 0 takes d > (C² − 1) h / (2 (h − 1)²). We choose

            h = 1 + √(C² (C² − 1)),   d = 5/8 + BURST_LENGTH / C²,

        for which that bound is h/(2 C²) ≤ 5/8 < d: h rises with C², d falls, and for C² → 1 both
        rates go to 1, which is the Poisson process.
        """
        h = 1.0 + math.sqrt(cv2 * (cv2 - 1.0))
        d = 0.625 + BURST_LENGTH / cv2
        per_low = 1.0 / (d * (h - 1.0))
        low = (2.0 * (h - 1.0) - (cv2 - 1.0) * h * per_low) / (
            2.0 * (h - 1.0) + (cv2 - 1.0) * (h - per_low)
        )
        return cls(high=h, low=low, burst=d, lull=d * (h - 1.0) / (1.0 - low))

    @property
    def share(self) -> float:
        """The share of time at the high rate."""
        return self.burst / (self.burst + self.lull)

    @property
    def rate(self) -> float:
        """The long-run rate: 1, up to rounding."""
        return self.share * self.high + (1.0 - self.share) * self.low

    @property
    def cv2(self) -> float:
        """C² of the times between arrivals, by the formula above for any four parameters."""
        switching, rate = 1.0 / self.burst + 1.0 / self.lull, self.rate
        excess = 2.0 * (self.high - rate) * (rate - self.low)
        return 1.0 + excess / (self.high * self.low + switching * rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpec:
    """A synthetic trace to be made: which jobs, how many, how often, how bursty."""

    pool: tuple[TraceJob, ...]
    """Jobs to draw from: each job that arrives is like one of these, in all but name and time."""
    weights: tuple[float, ...] | None = None
    """How often each of them is drawn, relative to the others; None: all equally often."""
    arrivals_per_hour: PerHour = NEWTRACE_PER_HOUR
    cv2: float = 1.0
    jobs: int | None = None
    """How many jobs; None: as many as arrive within `hours`."""
    hours: float | None = None

    def __post_init__(self) -> None:
        if not self.pool:
            raise InputError("pool", 0, "at least one job to draw from")
        check_rate(self.arrivals_per_hour)
        check_cv2(self.cv2)
        if (self.jobs is None) == (self.hours is None):
            raise InputError("jobs", self.jobs, "either a number of jobs or of hours")
        if self.jobs is not None and self.jobs < 1:
            raise InputError("jobs", self.jobs, "a whole number >= 1")
        if self.hours is not None and not 0 < self.hours < math.inf:
            raise InputError("hours", self.hours, "a finite number > 0")


def check_rate(value: PerHour, field: str = "arrivals_per_hour") -> PerHour:
    if not 1.0 / MAX_PER_HOUR <= value <= MAX_PER_HOUR:
        raise InputError(field, value, RATE_EXPECTED)
    return value


def check_cv2(value: float, field: str = "cv2") -> float:
    if not 1.0 <= value <= MAX_CV2:
        raise InputError(field, value, CV2_EXPECTED)
    return value


def spec_of_mix(
    mix: Mapping[str, float] = NEWTRACE_MIX,
    *,
    jobs: int | None = None,
    hours: float | None = None,
    arrivals_per_hour: PerHour = NEWTRACE_PER_HOUR,
    cv2: float = 1.0,
) -> TraceSpec:
    """Jobs of which only the application is known, in these proportions."""
    for application, weight in mix.items():
        if not application.strip():
            raise InputError("mix", application, "an application's name, such as cifar10")
        if not 0 < weight < math.inf:
            raise InputError(f"mix.{application}", weight, "a finite number > 0")
    return TraceSpec(
        pool=tuple(TraceJob(name=name, arrival_s=0.0, application=name) for name in mix),
        weights=tuple(mix.values()),
        arrivals_per_hour=arrivals_per_hour,
        cv2=cv2,
        jobs=jobs,
        hours=hours,
    )


def spec_like(
    trace: Trace,
    *,
    jobs: int | None = None,
    hours: float | None = None,
    arrivals_per_hour: PerHour | None = None,
    cv2: float = 1.0,
) -> TraceSpec:
    """Jobs drawn whole, with replacement, from a trace: its mix, and its heavy tails.

    The rate is the trace's own unless given, and so is the number of jobs.
    """
    own = sum(trace.arrivals_per_hour().values()) if arrivals_per_hour is None else 0.0
    return TraceSpec(
        pool=trace.jobs,
        arrivals_per_hour=own if arrivals_per_hour is None else arrivals_per_hour,
        cv2=cv2,
        jobs=len(trace.jobs) if jobs is None and hours is None else jobs,
        hours=hours,
    )


def synthetic_trace(spec: TraceSpec, seed: int) -> Trace:
    return Trace(tuple(synthetic_jobs(spec, seed)))


def synthetic_jobs(spec: TraceSpec, seed: int) -> Iterator[TraceJob]:
    """The jobs in order of arrival, drawn as they are asked for: memory does not grow.

    The same seed gives the same jobs; more jobs or hours go on where fewer ended.
    """
    end = math.inf if spec.hours is None else spec.hours * SECONDS_PER_HOUR
    endless = _endless_jobs(spec, seed)
    within = itertools.takewhile(lambda job: job.arrival_s < end, endless)
    return within if spec.jobs is None else itertools.islice(endless, spec.jobs)


def _endless_jobs(spec: TraceSpec, seed: int) -> Iterator[TraceJob]:
    times, phases, mix = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    mean_s = SECONDS_PER_HOUR / spec.arrivals_per_hour
    pool = [(job, f"{job.application}-") for job in spec.pool]
    upto = None if spec.weights is None else np.cumsum(spec.weights) / np.sum(spec.weights)
    number = 0
    for chunk in unit_arrivals(spec.cv2, times, phases):
        draws = mix.random(len(chunk))
        if upto is None:
            picks = (draws * len(pool)).astype(int)
        else:
            picks = np.minimum(np.searchsorted(upto, draws, side="right"), len(pool) - 1)
        arrivals = np.round(chunk * mean_s, MICROSECONDS)
        for arrival_s, pick in zip(arrivals.tolist(), picks.tolist(), strict=True):
            job, prefix = pool[pick]
            yield job.again(f"{prefix}{number}", arrival_s)
            number += 1


def unit_arrivals(
    cv2: float, times: np.random.Generator, phases: np.random.Generator
) -> Iterator[Floats]:
    """Arrival times at long-run rate 1, chunk after chunk.

    At a rate that changes, arrivals are those of a Poisson process of rate 1 on a clock that runs
    at that rate; so a chunk is a chunk of the latter, read off on the clock.
    """
    clock = None if cv2 - 1.0 <= POISSON else _Clock(Bursts.of(cv2), phases)
    last = 0.0
    while True:
        chunk = last + np.cumsum(times.exponential(size=CHUNK))
        last = float(chunk[-1])
        yield chunk if clock is None else clock.times(chunk)


class _Clock:
    """Time against expected arrivals: a line whose slope is the rate of the moment.

    It starts in the long run (high with its share of time), and forgets what has been read.
    """

    def __init__(self, bursts: Bursts, phases: np.random.Generator) -> None:
        self._phases = phases
        order = slice(None) if phases.random() < bursts.share else slice(None, None, -1)
        self._lengths = np.tile([bursts.burst, bursts.lull][order], CHUNK // 16)
        self._rates = np.tile([bursts.high, bursts.low][order], CHUNK // 16)
        self._expected, self._time = np.zeros(1), np.zeros(1)

    def times(self, expected: Floats) -> Floats:
        """When so many arrivals are to be expected; must be asked for in rising order."""
        while self._expected[-1] < expected[-1]:
            self._extend()
        found = np.interp(expected, self._expected, self._time)
        passed = int(np.searchsorted(self._expected, expected[-1], side="right")) - 1
        self._expected, self._time = self._expected[passed:], self._time[passed:]
        return found

    def _extend(self) -> None:
        lengths = self._phases.exponential(size=len(self._lengths)) * self._lengths
        time = self._time[-1] + np.cumsum(lengths)
        expected = self._expected[-1] + np.cumsum(lengths * self._rates)
        self._time = np.concatenate([self._time, time])
        self._expected = np.concatenate([self._expected, expected])
