"""The profiler: learns the speedups, work, arrivals and rescaling times of job classes.

Jobs of a class share what they learn. `docs/concepts/learning.md` states every rule; the curves are
made in `curves.py`, what is believed before anything is measured is in `fading_means.py` and
`class_knowledge.py`.

Pure state: no clock, no I/O. One thread tells it things; `document` and `classes` may be asked by
others.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from copy import copy

from boa.api.classes import ClassDocument
from boa.model.cluster import JobId
from boa.model.job import JobRecord, JobSpec, Run
from boa.model.layouts import Trial, is_news, with_trial
from boa.model.placements import FailedPlacement, Placement
from boa.model.profile import ClassProfile
from boa.model.records import Cell, CellKey, ClassRecord, Report
from boa.model.service import ClassPrior
from boa.model.streams import class_of
from boa.model.workload import GpuType, JobClass, Workload
from boa.scheduler.learn.class_beliefs import ClassBeliefs
from boa.scheduler.learn.class_document import document_of
from boa.scheduler.learn.class_knowledge import Known
from boa.scheduler.learn.class_record import record_of, restore
from boa.scheduler.learn.fading_means import ARRIVALS_PER_HOUR, ARRIVALS_WEIGHT_H, Arrivals
from boa.scheduler.learn.material import Mark, mark_of
from boa.scheduler.learn.measurements import (
    MOST_EPOCHS,
    Stretch,
    is_amount,
    is_duration,
    stretches,
)
from boa.scheduler.learn.rescaling import Told, has_first_step
from boa.scheduler.learn.usual_scaling import usual_serial
from boa.units import GpuName, PerHour, Seconds


class Profiler(ClassBeliefs):
    def __init__(
        self,
        gpu_types: Mapping[GpuName, GpuType],
        priors: Mapping[str, ClassPrior],
        *,
        began: Seconds,
        engine: str = "local",
    ) -> None:
        """`began`: when arrivals were first watched for. `engine`: what starts jobs, by name. A
        class that a prior says all about (rates, work and how often it comes) is planned for
        before its first job."""
        super().__init__(gpu_types, priors)
        self._began, self._engine = began, engine
        self._marks: dict[str, Mark] = {}
        self._suspects: dict[str, Seconds] = {}
        self._version = 0
        self._dirty_cells: dict[CellKey, None] = {}
        self._dirty_classes: set[str] = set()
        self._last_done: dict[JobId, int] = {}
        self._again_at: Seconds = math.inf
        """When a placement that failed may next be tried again."""
        for name, prior in priors.items():
            if prior.profile is not None and prior.arrivals_per_hour is not None:
                known = self._class(name, began)
                known.epochs_said = len(prior.profile.work)
                self._suspects[name] = began

    # What it is told

    def load(self, cells: Iterable[Cell], classes: Iterable[ClassRecord]) -> None:
        """At start, from the store."""
        for record in classes:
            restore(self._class(record.name, self._began), record.document)
            self._suspects[record.name] = self._began
        for cell in cells:
            known = self._known.get(cell.key.job_class)
            if known is not None:
                known.remember(cell)
        self._wait_again()

    def arrived(self, job: JobRecord, now: Seconds) -> None:
        """The newest job of a class says what the class is like.

        Where a prior says how often a class comes it was watched for all along; otherwise its
        watch begins with its first job, which itself says nothing of how often others follow.
        """
        name = job.job_class
        new = name not in self._known
        known = self._class(name, now)
        known.specified(job.spec)
        if known.placements.runs(job.code):
            known.placed_anew()
        if job.background:  # nothing is planned or paid for it
            self._touched(name)
            return
        if not known.jobs and name not in self._priors:  # it came in the background until now
            known.arrivals, new = self._new(name, now).arrivals, True
        known.jobs, known.payers = known.jobs + 1, known.payers.arrived(job.payer)
        if not new or self._stated(name) is not None:
            known.arrivals = known.arrivals.arrived(now)
        self._suspects[name] = now
        self._dirty_classes.add(name)

    def reported(self, job: JobRecord, before: Report | None, report: Report) -> None:
        """Two reports of one attempt make a rate, where its run is; a first one makes none.

        `job`: with what its run has told of its rescaling, this report included.
        """
        known, run = self._known.get(job.job_class), job.run
        if known is None or run is None or report.attempt != run.attempt:
            return
        saving = known.saving.heard(job, report)
        if saving != known.saving:
            known.saving = saving
            self._dirty_classes.add(known.name)
        self._noisy(known, report)
        self._laid_out(known, run, report)
        if job.total is not None and known.totalled(job.total):
            self._touched(known.name)
        if report.units > 0:
            self._went_well(known, job, run)
        if before is None:
            self._started(known, run, report)
            return
        steady = not has_first_step(run, before)
        for stretch in stretches(before, report):
            if steady:
                self._measured(known, run, stretch)
            if before.epoch + 1 < report.epoch > stretch.epoch:  # several ended unseen
                begun = before.progress if stretch.epoch == before.epoch else 0.0
                self.epoch_done(job, stretch.epoch, begun + stretch.units)

    def _started(self, known: Known, run: Run, report: Report) -> None:
        """Its first report ends a start at the latest."""
        if run.reported_at is None and run.started_at is not None:
            seconds = max(run.started_at - run.decided_at, 0.0) + report.uptime_s
            if is_duration(seconds):
                known.started(seconds)
                self._touched(known.name)

    def _went_well(self, known: Known, job: JobRecord, run: Run) -> None:
        """It gets somewhere here: so where it failed before, that was for where it was."""
        tried, news = known.placements, known.works(Placement.of(run.allocation))
        for found in job.unfit:
            if (found.place, found.code) not in tried.failed and tried.fails(found, found.at):
                news = True
                self._placed_anew(known)
        if news:
            self._touched(known.name)

    def _measured(self, known: Known, run: Run, stretch: Stretch) -> None:
        at, epoch = run.allocation, min(stretch.epoch, MOST_EPOCHS - 1)
        key = CellKey(known.name, at.gpu, len(at.nodes) > 1, at.width, epoch)
        if known.measured(key, stretch):
            self._suspects.setdefault(known.name, known.arrivals.at)
        self._dirty_cells[key] = None

    def epoch_done(self, job: JobRecord, epoch: int, units: float) -> None:
        """Learn an epoch's units, once for every epoch of a job: a restart may end it again."""
        known = self._known.get(job.job_class)
        if known is None or not is_amount(units):
            return
        if not self._last_done.get(job.id, -1) < epoch < MOST_EPOCHS:
            return
        self._last_done[job.id] = epoch
        known.worked(epoch, units)
        self._touched(job.job_class)

    def ended(self, job: JobRecord, now: Seconds) -> None:
        """After its holds were closed. Only a job that succeeded shows how much there was to do."""
        known = self._known.get(job.job_class)
        if known is None:
            return
        news = [known.works(place) for place in job.worked]
        if any(news):
            self._touched(job.job_class)
        if job.state == "succeeded":
            known.ended += 1
            if job.attempts == 1 and is_amount(job.ran_s):
                known.ran_whole(job.ran_s)
            if job.progress > 0:
                self.epoch_done(job, job.epoch, job.progress)
            if job.epoch + (job.progress > 0) > 0:
                known.had_epochs(job.epoch + (job.progress > 0))
            elif is_amount(job.held_gpu_s):
                known.went_silently(job.held_gpu_s)
            self._touched(job.job_class)
        self._last_done.pop(job.id, None)

    def _noisy(self, known: Known, report: Report) -> None:
        noise_scale = report.metrics.get("noise_scale", 0.0)
        if not is_amount(noise_scale) or report.epoch < 0:
            return
        if known.noisy(min(report.epoch, MOST_EPOCHS - 1), noise_scale):
            self._dirty_classes.add(known.name)

    def _laid_out(self, known: Known, run: Run, report: Report) -> None:
        """Take what can have been tried: on the run's GPU type, no wider than its class may be."""
        news = [
            trial
            for trial in report.layouts
            if trial.gpu == run.allocation.gpu
            and trial.width <= known.gpus.max
            and is_news(known.layouts, trial)
        ]
        for trial in news:
            known.layouts = with_trial(known.layouts, trial)
        if news:
            self._dirty_classes.add(known.name)

    def layouts(self, job_class: str, gpu: GpuName) -> list[Trial]:
        """Layouts that jobs of a class have tried on a GPU type."""
        known = self._known.get(job_class)
        return [] if known is None else [trial for trial in known.layouts if trial.gpu == gpu]

    def rescaled(self, job: JobRecord, what: Told) -> None:
        """Learn from what a report added to what is known of the rescaling before it."""
        known = self._known.get(job.job_class)
        if known is not None and what.parts:
            known.rescaled(what)
            self._touched(job.job_class)

    def failed(
        self, job: JobRecord, found: FailedPlacement, began: Seconds, *, counted: bool
    ) -> None:
        """A failure of where the job was, if it is `counted` for none of the job's own. One that
        fails where others went well, and nowhere got anywhere, has taught nothing before."""
        known = self._known.get(job.job_class)
        if known is None:
            return
        tried = known.placements
        if not counted:
            news = tried.fails(found, began)
        else:
            news = not job.worked and found.place in tried.worked and tried.withdraw(job.id)
        if news:
            self._placed_anew(known)

    def retry(
        self, job_class: str, gpu: GpuName | None = None, width: int | None = None
    ) -> list[FailedPlacement]:
        """Forget where jobs of a class failed, of this type and width or any."""
        known = self._known.get(job_class)
        found = [] if known is None else known.placements.forgive(gpu, width)
        if known is not None and found:
            self._placed_anew(known)
        return found

    def failures(self, job_class: str) -> list[FailedPlacement]:
        """Placements at which jobs of a class failed."""
        known = self._known.get(job_class)
        return [] if known is None else list(known.placements.failed.values())

    def look(self, now: Seconds) -> None:
        if now < self._again_at:
            return
        for known in self._known.values():
            if known.placements.look(now):
                self._placed_anew(known)
        self._wait_again()

    def _placed_anew(self, known: Known) -> None:
        known.placed_anew()
        self._touched(known.name)
        self._wait_again()

    def _wait_again(self) -> None:
        self._again_at = min(
            (known.placements.again_at for known in self._known.values()), default=math.inf
        )

    # What is to be stored

    def drain(self) -> tuple[list[Cell], list[ClassRecord]]:
        """Cells and classes that have changed since the last call; to `keep` if they could not be
        stored."""
        cells = [self._known[key.job_class].cells[key] for key in self._dirty_cells]
        classes = [record_of(self._known[name]) for name in sorted(self._dirty_classes)]
        self._dirty_cells, self._dirty_classes = {}, set()
        return cells, classes

    def keep(self, cells: Iterable[Cell], classes: Iterable[ClassRecord]) -> None:
        """Have these drained again, as they are by then."""
        self._dirty_cells.update((cell.key, None) for cell in cells)
        self._dirty_classes.update(record.name for record in classes)

    # What it knows

    @property
    def version(self) -> int:
        """Rises when the workload has changed materially: reason enough to plan anew."""
        if self._suspects:
            suspects, self._suspects = self._suspects, {}
            for name, at in suspects.items():
                mark, before = mark_of(self._known[name], at), self._marks.get(name)
                if before is None or mark.differs(before):
                    self._marks[name] = mark
                    self._version += 1
        return self._version

    def workload(self, now: Seconds, active: Collection[str] | None = None) -> Workload | None:
        """All classes that can run, by who pays for them; None if there is none.

        Of a class whose jobs have all failed, and that has none now (`active`: those that have),
        nothing is known but a name: it is not planned for, unless a prior says that it comes.
        """
        there = None if active is None else set(map(class_of, active))
        known = [self._known[name] for name in sorted(self._known) if self._comes(name, there)]
        classes, hopes = list[JobClass](), dict[str, JobClass]()
        for one in known:
            if (found := one.as_class(now)) is None:
                continue
            classes += one.payers.streams(found, active or ())
            if (hoped := one.as_hoped(now)) is not None:
                hopes |= {by.name: by for by in one.payers.streams(hoped, active or ())}
        if not classes:
            return None
        return Workload(gpu_types=self.gpu_types, classes=tuple(classes), hopes=hopes)

    def _comes(self, name: str, active: Collection[str] | None) -> bool:
        """`active`: classes."""
        known = self._known[name]  # one that has come in the background alone has no jobs
        tried = (known.ended > 0 and known.jobs > 0) or self._stated(name) is not None
        return tried or active is None or name in active

    def profiles(self) -> dict[str, ClassProfile]:
        """Profiles of the classes that something was measured or said of."""
        found = {name: self._known[name].as_profile() for name in self.classes()}
        return {name: profile for name, profile in found.items() if profile is not None}

    def classes(self) -> list[str]:
        return sorted(self._known.copy())

    def document(self, job_class: str, now: Seconds) -> ClassDocument | None:
        """The document of `boa show CLASS`; None if there is no such class."""
        known = self._known.get(job_class)
        return None if known is None else document_of(known, now)

    def supposed(self, spec: JobSpec, now: Seconds) -> Known:
        """A class as it would be known if this job arrived: a copy that nobody keeps."""
        known = self._known.get(spec.job_class)
        found = self._new(spec.job_class, now) if known is None else copy(known)
        found.specified(spec)
        return found

    def has_ended(self, job_class: str) -> bool:
        """Return whether a job of a class has succeeded."""
        known = self._known.get(job_class)
        return known is not None and known.ended > 0

    def _class(self, name: str, now: Seconds) -> Known:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._new(name, now)
        return known

    def _new(self, name: str, now: Seconds) -> Known:
        prior, stated = self._priors.get(name), self._stated(name)
        if prior is None or stated is None:
            arrivals = Arrivals.prior(ARRIVALS_PER_HOUR, ARRIVALS_WEIGHT_H, now)
        else:
            arrivals = Arrivals.prior(stated, prior.arrivals_weight_h, self._began)
        return Known(
            name=name,
            gpu_types=self.gpu_types,
            prior=prior,
            arrivals=arrivals,
            engine=self._engine,
            serial=usual_serial(self._known.values()),
        )

    def _stated(self, name: str) -> PerHour | None:
        prior = self._priors.get(name)
        return None if prior is None else prior.arrivals_per_hour

    def _touched(self, name: str) -> None:
        self._suspects.setdefault(name, self._known[name].arrivals.at)
        self._dirty_classes.add(name)
