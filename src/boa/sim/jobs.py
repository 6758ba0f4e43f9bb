"""A job inside the simulator: where its training stands, what it holds, how fast it goes."""

import math
from functools import reduce
from operator import add

from boa.model.cluster import Allocation, JobId, JobView, Share, UserRequest
from boa.model.trace import TraceJob
from boa.sim.learners import Learner, TrueRates
from boa.sim.physics import Truth
from boa.sim.rigid_learner import RigidLearner
from boa.units import GpuName, Seconds

NEVER = float("inf")
ALL = 1 - 1e-9
"""An epoch that is done up to this is done: less is rounding, and could not be waited for."""


class ActiveJob:
    """Mutable, and only the simulator's: policies see its view."""

    __slots__ = (
        "_asked",
        "_timed",
        "_times",
        "_wakes",
        "allocation",
        "arrival",
        "asked",
        "clock",
        "done",
        "epoch",
        "epochs",
        "held_s",
        "id",
        "learner",
        "note",
        "pace",
        "paused_s",
        "request",
        "resume_at",
        "serial",
        "service",
        "speed",
        "stamp",
        "starts",
        "told_work",
        "tried",
        "truth",
        "until",
        "whole_s",
        "width",
        "work",
    )

    def __init__(self, asked: TraceJob, truth: Truth, learner: Learner, serial: int) -> None:
        self.id: JobId = asked.name
        self.asked, self.truth, self.learner, self.serial = asked, truth, learner, serial
        self.request = UserRequest(asked.gpus, asked.guaranteed)
        self.arrival = self.clock = asked.arrival_s
        self.work: list[float] = truth.work(asked).tolist()
        self.whole_s = isinstance(learner, RigidLearner)
        """Whether what is left of an epoch takes whole seconds, from when it is looked at."""
        self.told_work = learner.work if isinstance(learner, RigidLearner) else self.work
        """Work in the units of what is predicted."""
        self.epochs = len(self.work)
        self.epoch = 0
        self.done = 0.0  # progress inside the epoch
        self.allocation: Allocation | None = None
        self.width = 0
        self.pace: TrueRates | None = None
        self.speed = 1.0  # less than 1 under interference
        self.resume_at: Seconds = 0.0
        self.starts = 0  # the first one and every rescaling
        self.service = 0.0  # GPU-seconds held
        self.held_s = 0.0  # seconds with GPUs
        self.paused_s = 0.0  # of those, rescaling
        self.until: int | None = None
        self.tried: dict[GpuName, int] = {}
        self.note: object = None
        self.stamp = 0
        self._asked: object = None
        self._wakes: Seconds = NEVER
        """When it wakes, as it stood when that was last asked."""
        self._timed: object = None
        self._times: list[Seconds] = []

    @property
    def finished(self) -> bool:
        return self.epoch >= self.epochs

    @property
    def rescalings(self) -> int:
        """Changes of GPUs after its first start."""
        return max(self.starts - 1, 0)

    def reallocate(self, allocation: Allocation | None, now: Seconds, ready: Seconds) -> None:
        """Move to other GPUs at `now`; progress goes on at `ready`."""
        self.allocation = allocation
        self.pace = None
        self.stamp += 1
        self.width = 0 if allocation is None else allocation.width
        if allocation is not None:
            self.starts += 1
            self.resume_at = ready

    def advance(self, now: Seconds) -> None:
        """Bring the job up to `now`, or to its end if that comes before; `clock` says which."""
        if self.allocation is None:
            self.clock = now
            return
        if self.clock < self.resume_at:
            until = min(self.resume_at, now)
            self.paused_s += until - self.clock
            self._hold_until(until)
        if self.clock < now and self.epoch < self.epochs:
            self._train(now)

    def _train(self, now: Seconds) -> None:
        """Epoch after epoch until `now` or the end; the inner loop of every simulation."""
        clock, epoch, done, work, speed = self.clock, self.epoch, self.done, self.work, self.speed
        pace = self.pace
        while clock < now and epoch < self.epochs:
            if pace is None or epoch >= pace.end:
                self.epoch = epoch
                pace = self._find_pace()
            rate, needed = pace.rates[epoch - pace.first] * speed, work[epoch]
            # No rate: GPUs that it cannot run on in this arrangement, held in vain.
            ends = clock + (needed - done) / rate if rate > 0 else NEVER
            if ends > now:
                done += rate * (now - clock)
                clock = now
            else:
                clock = clock + round(ends - clock) if self.whole_s else ends
                done = needed
            if done >= needed * ALL:
                epoch += 1
                done = 0.0
        self.epoch, self.done = epoch, done
        self._hold_until(clock)

    def _hold_until(self, moment: Seconds) -> None:
        self.held_s += moment - self.clock
        self.service += (moment - self.clock) * self.width
        self.clock = moment

    def rate(self) -> float:
        """True progress per second in this epoch on these GPUs."""
        pace = self.pace
        if pace is None or self.epoch >= pace.end:
            pace = self._find_pace()
        return pace.rates[self.epoch - pace.first] * self.speed

    def _find_pace(self) -> TrueRates:
        allocation = self.allocation
        assert allocation is not None
        pace = self.pace = self.learner.pace(allocation.gpu, allocation.shape, self.epoch)
        if self.width > self.tried.get(allocation.gpu, 0):
            self.tried[allocation.gpu] = self.width
        return pace

    def wakes_at(self) -> Seconds:
        """When it ends, reaches the epoch its policy waits for, or its pace may change."""
        if self.allocation is None:
            return NEVER
        at, rate = max(self.clock, self.resume_at), self.rate()
        if rate <= 0:
            return NEVER
        asked = (at, self.epoch, self.done, self.pace, self.until, self.speed)
        if asked == self._asked:  # as is most often asked, twice and three times
            return self._wakes
        assert self.pace is not None
        last = min(self.epochs, self.pace.end)
        if self.until is not None:
            last = min(last, max(self.until, self.epoch + 1))
        rest_s = (self.work[self.epoch] - self.done) / rate
        at += math.ceil(rest_s) if self.whole_s else rest_s
        # One after the other: a sum that is rounded otherwise would be another moment.
        at = reduce(add, self._epoch_times()[self.epoch + 1 : last], at)
        self._asked, self._wakes = asked, at
        return at

    def _epoch_times(self) -> list[Seconds]:
        """Seconds of every epoch at this pace, up to its end; those before it are left at 0."""
        pace, speed = self.pace, self.speed
        assert pace is not None
        if self._timed != (pace, speed):
            first, last = pace.first, min(self.epochs, pace.end)
            rates = pace.rates[: last - first]
            times = [
                work / (rate * speed) if rate > 0 else NEVER
                for work, rate in zip(self.work[first:last], rates, strict=True)
            ]
            if self.whole_s:  # looked at when they are over, however they are rounded
                times = [seconds if seconds == NEVER else math.ceil(seconds) for seconds in times]
            self._timed, self._times = (pace, speed), [0.0] * first + times
        return self._times

    def as_view(self) -> JobView:
        """The job as its policy sees it."""
        return JobView(
            id=self.id,
            job_class=self.truth.name,
            arrival=self.arrival,
            serial=self.serial,
            epoch=self.epoch,
            left=1.0 - self.done / self.work[self.epoch] if self.done else 1.0,
            work=self.told_work,
            prediction=self.learner,
            asked=self.request,
            allocation=self.allocation,
            rescalings=self.rescalings,
            rescale_s=self.truth.rescale_s,
            service=self.service,
            tried=self.tried,
            note=self.note,
        )

    def apply(self, share: Share | None) -> None:
        self.note = None if share is None else share.note
        self.until = None if share is None else share.until
