"""A simulation's learners as the scheduler asks them."""

from collections.abc import Collection, Hashable, Mapping, Sequence

from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.model.placements import FailedPlacement, Placement
from boa.model.records import Report
from boa.model.workload import Workload
from boa.scheduler.learn.beliefs import Believed
from boa.scheduler.learn.rescaling import Told
from boa.sim.jobs import ActiveJob
from boa.sim.knowledge import Knowledge
from boa.units import Seconds


class LearnerBeliefs:
    """Learners see what their jobs run at by themselves: what jobs report teaches nothing more."""

    left_passes = True
    """As its job runs: nothing is reported."""

    def __init__(self, knowledge: Knowledge, jobs: Mapping[JobId, ActiveJob]) -> None:
        self._knowledge, self._jobs = knowledge, jobs
        self._alone = knowledge.settings.learning == "job" or knowledge.own_batch

    def arrived(self, job: JobRecord, now: Seconds) -> None: ...

    def reported(self, job: JobRecord, before: Report | None, report: Report) -> None: ...

    def epoch_done(self, job: JobRecord, epoch: int, units: float) -> None: ...

    def rescaled(self, job: JobRecord, what: Told) -> None: ...

    def ended(self, job: JobRecord, now: Seconds) -> None: ...

    def failed(
        self, job: JobRecord, found: FailedPlacement, began: Seconds, *, counted: bool
    ) -> None: ...

    def worked(self, job: JobRecord) -> frozenset[Placement]:
        """None: no job of a simulation fails for where it is."""
        return frozenset()

    def look(self, now: Seconds) -> None: ...

    def kin(self, job: JobRecord) -> Hashable:
        return job.id if self._alone else job.job_class

    def of(self, job: JobRecord) -> Believed:
        known = self._jobs[job.id]
        rescale_s = known.truth.rescale_s
        return Believed(known.epochs, known.learner, rescale_s, known.tried, saves=True)

    def left(self, job: JobRecord) -> float:
        known = self._jobs[job.id]
        return 1.0 if known.finished else 1.0 - known.done / known.work[known.epoch]

    def work(self, job: JobRecord) -> Sequence[float]:
        return self._jobs[job.id].told_work

    @property
    def version(self) -> int:
        return self._knowledge.version

    def workload(self, now: Seconds, active: Collection[str] | None = None) -> Workload:
        return self._knowledge.workload(now, active)

    def units(self, job_class: str) -> tuple[float, ...]:
        return self._knowledge.units(job_class)
