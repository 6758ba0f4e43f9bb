"""All that is known of one class: what its jobs said and did, and the curves that follow."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from boa.catalogue.estimate import Curves, job_class, limit_of, packed_curves
from boa.goodput.belief import SERIAL
from boa.model.job import GpuLimits, JobSpec
from boa.model.layouts import Trial
from boa.model.placements import Placement
from boa.model.profile import ClassProfile
from boa.model.records import Cell, CellKey
from boa.model.service import ClassPrior
from boa.model.speedup import Floats
from boa.model.workload import GpuType, JobClass
from boa.scheduler.learn.bars import MOST_GPUS, Bars, Mask
from boa.scheduler.learn.curves import (
    Learned,
    Prior,
    learned,
    merged_work,
    of_profile,
    usual_scaling,
)
from boa.scheduler.learn.fading_means import Arrivals, Mean
from boa.scheduler.learn.measurements import MOST_EPOCHS, Stretch, added, contradicts, is_news
from boa.scheduler.learn.payers import Payers
from boa.scheduler.learn.picture import Picture
from boa.scheduler.learn.placements_tried import PlacementsTried
from boa.scheduler.learn.rescaling import Rescalings, Timed, Told
from boa.scheduler.learn.saving import Saving
from boa.scheduler.learn.widths import ahead, settled_widths, up_to, without
from boa.units import GpuName, Seconds

GPU_S: Seconds = 3600.0
"""Nothing known of a job's work: an hour on one GPU."""
RESCALE_S: Seconds = 30.0
"""Nothing known of a rescaling: half a minute."""
PATIENCE = 0.02
"""Part of all reports so far that must have been news of this kind, unless it is of a wider width:
the more is known, the less one report can change."""
NOISE_NOTICED = 0.05
"""Part by which a noise scale must have moved to be stored again."""


@dataclass(slots=True, kw_only=True)
class Known:
    name: str
    gpu_types: Mapping[GpuName, GpuType]
    prior: ClassPrior | None
    arrivals: Arrivals
    payers: Payers = field(default_factory=Payers)
    saving: Saving = field(default_factory=Saving)
    engine: str = "local"
    """The engine that starts jobs now."""
    gpus: GpuLimits = field(default_factory=GpuLimits)
    weight: float = 1.0
    epochs_said: int = 1
    epochs_seen: int = 0
    """How many a job had that succeeded."""
    total_work: float | None = None
    """Units of a whole job by the spec of the newest one."""
    total: float | None = None
    """Units of a whole job by the newest script that reports them; overrules `total_work`."""
    work: dict[int, Mean] = field(default_factory=dict)
    """Units by epoch, as jobs had them."""
    rescalings: dict[str, Rescalings] = field(default_factory=dict)
    """Rescaling times by engine."""
    noise: dict[int, Mean] = field(default_factory=dict)
    """Gradient noise scale in samples, by epoch; every report counts 5 % less with the next."""
    gpu_s: Mean = field(default_factory=Mean)
    """GPU-seconds of jobs that ended without a report."""
    whole: Timed = field(default_factory=Timed)
    """Seconds of jobs that succeeded in one run, from its start to its end."""
    starts: Timed = field(default_factory=Timed)
    """Seconds from the start of a run to its first report: none of its rescalings took longer."""
    jobs: int = 0
    ended: int = 0
    cells: dict[CellKey, Cell] = field(default_factory=dict)
    placements: PlacementsTried = field(default_factory=PlacementsTried)
    layouts: tuple[Trial, ...] = ()
    """Layouts of its model that jobs have tried."""
    tried: Mapping[GpuName, int] = field(default_factory=dict)
    """The most GPUs of each type that progress was made on."""
    serial: float = SERIAL
    """Share of its work that does not scale, until it is measured: that of other classes."""
    settled: Mapping[GpuName, tuple[int, ...]] = field(default_factory=dict)
    """Widths that were measured for long enough to plan with."""
    profile: ClassProfile | None = field(init=False)
    """The prior's, unless it tells nothing of any type and width that the class may use."""
    _counted: int = 0
    """Epochs by the total that the newest script reports, where its spec does not say how many
    there are; 0: unknown."""
    _noise_stored: dict[int, float] = field(default_factory=dict)
    _noticed: dict[CellKey, Cell] = field(default_factory=dict)
    _reports: int = 0
    _news: int = 0
    _picture: Picture | None = None
    _planned: tuple[Picture, tuple[JobClass, JobClass]] | None = None
    _resampled: tuple[int, Prior] | None = None

    def __post_init__(self) -> None:
        self.profile = self._usable_profile()

    # What is told

    def specified(self, spec: JobSpec) -> None:
        """The newest job's word is the class's."""
        said = (spec.gpus, spec.weight, spec.total_work, spec.epochs)
        if said == (self.gpus, self.weight, self.total_work, self.epochs_said):
            return
        self.gpus, self.weight, self.total_work, self.epochs_said = said
        self.profile = self._usable_profile()
        self._count_epochs()

    def measured(self, key: CellKey, stretch: Stretch) -> bool:
        """Whether that changes the picture."""
        cell = added(self.cells.get(key), key, stretch)
        self._reports += 1
        wider = self._remember(cell) | self._settle()
        if not wider and not is_news(cell, self._noticed.get(key)):
            return False
        self._noticed[key] = cell
        self._news += 1
        if not wider and self._news <= PATIENCE * self._reports:
            return False
        self._news, self._picture = 0, None
        return True

    def remember(self, cell: Cell) -> None:
        """As it was when the service last ran."""
        self._remember(cell)
        self._settle()
        self._noticed[cell.key] = cell
        self._reports += cell.reports
        self._picture = None

    def _remember(self, cell: Cell) -> bool:
        """Whether that is the widest so far on its type."""
        key = cell.key
        self.cells[key] = cell
        if cell.units > 0:
            self.works(Placement(key.gpu, key.width, key.across))
        if cell.units <= 0 or key.width <= self.tried.get(key.gpu, 0):
            return False
        self.tried = {**self.tried, key.gpu: key.width}
        return True

    def _settle(self) -> bool:
        """Whether a width is settled that was not. What once was stays so."""
        found = settled_widths(self.cells.values(), self.rescale_s)
        new = {
            gpu: tuple(sorted({*widths, *self.settled.get(gpu, ())}))
            for gpu, widths in found.items()
        }
        if all(self.settled.get(gpu) == widths for gpu, widths in new.items()):
            return False
        self.settled = {**self.settled, **new}
        return True

    def works(self, place: Placement) -> bool:
        """A job made progress there; whether that is news."""
        news = self.placements.works(place)
        if news:
            self._picture = None
        return news

    def placed_anew(self) -> None:
        """Something was learned of where jobs fail."""
        self._picture = None

    def totalled(self, total: float) -> bool:
        """Learn the total that a script reports; return whether it is news."""
        if self.total == total:
            return False
        self.total = total
        self._count_epochs()
        return True

    def worked(self, epoch: int, units: float) -> None:
        self.work[epoch] = self.work.get(epoch, Mean()).add(units)
        self._count_epochs()

    def _count_epochs(self) -> None:
        """Count the epochs of a script that has more than its spec names: they are alike."""
        self._picture, self._counted = None, 0
        if self.total is None or not self.work:
            return
        if self.epochs_said == 1 or max(self.work) >= self.epochs_said:
            usual = sum(mean.value for mean in self.work.values()) / len(self.work)
            self._counted = round(self.total / usual)

    def rescaled(self, what: Told) -> None:
        self.rescalings[self.engine] = self._own_rescalings.add(what)

    def noisy(self, epoch: int, noise_scale: float) -> bool:
        """Whether that is worth storing."""
        mean = self.noise[epoch] = self.noise.get(epoch, Mean()).add(noise_scale)
        stored = self._noise_stored.get(epoch, 0.0)
        if abs(mean.value - stored) <= NOISE_NOTICED * stored:
            return False
        self._noise_stored[epoch] = mean.value
        return True

    def went_silently(self, gpu_s: float) -> None:
        self.gpu_s = self.gpu_s.add(gpu_s)
        self._picture = None

    def ran_whole(self, seconds: Seconds) -> None:
        self.whole = self.whole.add(seconds)
        self._picture = None

    def started(self, seconds: Seconds) -> None:
        self.starts = self.starts.add(seconds)

    def had_epochs(self, epochs: int) -> None:
        self.epochs_seen = max(self.epochs_seen, epochs)
        self._picture = None

    def restored(self) -> None:
        """Its fields were read back from a record: what followed from others is forgotten."""
        self._noise_stored = {epoch: mean.value for epoch, mean in self.noise.items()}
        self.profile = self._usable_profile()
        self._count_epochs()

    # What follows

    @property
    def epochs(self) -> int:
        return min(max(self.epochs_said, self._counted or self.epochs_seen, 1), MOST_EPOCHS)

    @property
    def rescale_s(self) -> Seconds:
        """Seconds of a rescaling on this engine; another engine's stand in until one is measured.

        What a profile states counts as one; what nobody said is overruled by the first.
        """
        own = self._own_rescalings.total
        others = (rescalings.total for rescalings in self.rescalings.values())
        known = own if own.count else max(others, key=lambda timed: timed.count, default=own)
        if self.profile is not None:
            return known.after(self.profile.rescale_s)
        return known.value if known.count else self._bounded_s

    @property
    def _bounded_s(self) -> Seconds:
        """A rescaling that was never measured: no more than the shortest time to a first report, or
        half of the shortest whole job."""
        return min([RESCALE_S, *self.starts.last, *(one / 2.0 for one in self.whole.last)])

    @property
    def _own_rescalings(self) -> Rescalings:
        return self.rescalings.get(self.engine, Rescalings())

    @property
    def usable(self) -> list[GpuName]:
        return [gpu for gpu in self.gpu_types if not self.gpus.types or gpu in self.gpus.types]

    @property
    def picture(self) -> Picture:
        found = self._picture
        if found is None:
            found = self._picture = self._drawn()
        return found

    def as_class(self, now: Seconds) -> JobClass | None:
        """None: no type that can be rented runs it."""
        return None if not self.picture.curves else self._as(now, 0)

    def as_hoped(self, now: Seconds) -> JobClass | None:
        """As a trial may find it; None: there is nothing to try."""
        picture = self.picture
        same = all(picture.hoped[gpu] is curve for gpu, curve in picture.expected.items())
        return None if same else self._as(now, 1)

    def _as(self, now: Seconds, which: int) -> JobClass:
        picture = self.picture
        if self._planned is None or self._planned[0] is not picture:
            expected, hoped = (
                job_class(
                    self.name,
                    arrivals_per_hour=1.0,
                    rescaling=0.0,
                    curves=curves,
                    work=picture.work,
                    exact=True,
                )
                for curves in (picture.expected, picture.hoped)
            )
            most = limit_of({gpu: curve.widths[-1] for gpu, curve in picture.curves.items()})
            self._planned = (picture, (replace(expected, max_gpus=most), hoped))
        return replace(
            self._planned[1][which],
            arrivals_per_hour=self.arrivals.per_hour(now),
            rescale_s=self.rescale_s,
            weight=self.weight,
        )

    def as_profile(self) -> ClassProfile | None:
        """As far as a plan may go; None: nobody has measured anything, nor said it."""
        picture = self.picture
        if not picture.curves or not (self.tried or self.profile):
            return None
        return ClassProfile(
            name=self.name,
            work=tuple(picture.work.tolist()),
            rates={
                gpu: picture.tables[gpu][..., : curve.widths[-1] + 1]
                for gpu, curve in picture.curves.items()
            },
            rescale_s=self.rescale_s,
        )

    def _usable_profile(self) -> ClassProfile | None:
        profile = None if self.prior is None else self.prior.profile
        if profile is None:
            return None
        low, high = self.gpus.min, self.gpus.max
        tells = (profile.rates[gpu] for gpu in self.usable if gpu in profile.rates)
        return profile if any((rates[..., low : high + 1] > 0).any() for rates in tells) else None

    def _drawn(self) -> Picture:
        found = learned(self._prior(), list(self.cells.values()))
        tables = {gpu: self._limited(found, gpu) for gpu in self.usable if gpu in found.tables}
        tables = {gpu: table for gpu, table in tables.items() if table.any()}
        work = self._work(tables)
        bars = self.placements.bars(min(self.gpus.max, MOST_GPUS))
        offered = self._offered(tables, work, bars)
        if bars and not offered:  # what went well is outside of what the newest job allows
            bars = Bars(worked=bars.worked)
            offered = self._offered(tables, work, bars)
        plan, expected, hoped = (
            {gpu: curves[n] for gpu, curves in offered.items()} for n in range(3)
        )
        return Picture(found, tables, plan, expected, hoped, work, bars)

    def _offered(
        self, tables: Mapping[GpuName, Floats], work: Floats, bars: Bars
    ) -> dict[GpuName, tuple[Curves, Curves, Curves]]:
        """Curves by type: as they are offered to a plan, expected of a trial, and hoped of one."""
        found = {}
        for gpu, table in tables.items():
            curve = packed_curves(table[..., : self._reach(gpu) + 1], self._per_node(gpu))
            free, sure = (self._free(gpu, curve, barred) for barred in (bars.all, bars.most))
            if not sure:
                continue
            expected, hoped = self._ahead(gpu, without(curve, free, sure[0], free[-1]))
            if sure != free:
                expected = without(expected, sure, sure[0], free[-1])
            plan = without(expected, sure, sure[0], sure[-1])
            if self.profile is None:
                most = max([*self.settled.get(gpu, ()), self.gpus.min])
                plan = up_to(plan, most, work)
                hoped = up_to(hoped, self._reach(gpu), work)
            if hoped.widths[-1] <= plan.widths[-1] and sure == free:
                hoped = expected
            found[gpu] = (plan, expected, hoped)
        return found

    def _free(self, gpu: GpuName, curve: Curves, barred: Mapping[GpuName, Mask]) -> tuple[int, ...]:
        """Widths of a curve on the fewest nodes that are not barred."""
        if gpu not in barred:
            return curve.widths
        mask, size = barred[gpu], self._per_node(gpu)
        return tuple(k for k in curve.widths if not mask[int(k > size), min(k, mask.shape[1] - 1)])

    def _reach(self, gpu: GpuName) -> int:
        """The widest that may be tried: with a profile, all it tells of; without, no more than
        twice what is settled."""
        if self.profile is not None:
            return self.gpus.max
        widest = max(self.settled.get(gpu, (0,)))
        return min(max(2 * widest, self.gpus.min), self.gpus.max)

    def _ahead(self, gpu: GpuName, curve: Curves) -> tuple[Curves, Curves]:
        settled = self.settled.get(gpu, ())
        if self.profile is not None or not settled:
            return curve, curve
        return ahead(curve, settled, self._per_node(gpu))

    def _per_node(self, gpu: GpuName) -> int:
        return self.gpu_types[gpu].gpus_per_node

    def _limited(self, found: Learned, gpu: GpuName) -> Floats:
        """0 where the class may not run, or not on one node."""
        table = np.array(found.tables[gpu][..., : self.gpus.max + 1])
        table[..., : self.gpus.min] = 0.0
        table[:, 0, self._per_node(gpu) + 1 :] = 0.0
        return table

    def _prior(self) -> Prior:
        if self.profile is not None:
            if self._resampled is None or self._resampled[0] != self.epochs:
                assert self.prior is not None
                made = of_profile(self.profile, self.epochs, self.prior.measured_weight)
                self._resampled = (self.epochs, made)
            return self._resampled[1]
        stated = self._stated_work()
        unit = 1.0 if self.tried or stated is None else float(stated.sum()) / self._silent_s
        widest = min(max([self.gpus.max, *self.tried.values()]), MOST_GPUS)
        return usual_scaling(self.gpu_types, unit, self.epochs, widest, self.serial)

    def _stated_work(self) -> Floats | None:
        """Units of every epoch by the spec, by the profile, or by both; None: nobody said."""
        work = None if self.profile is None else merged_work(self.profile, self.epochs)
        total = self.total if self.total is not None else self._said_total
        if total is None:
            return work
        if work is None:
            work = np.ones(self.epochs)
        return work * (total / float(work.sum()))

    @property
    def _said_total(self) -> float | None:
        """The spec's, unless what jobs did contradicts it: then it may be in another unit."""
        if self.total_work is None or not self.ended or len(self.work) < self.epochs:
            return self.total_work
        seen = sum(mean.value for epoch, mean in self.work.items() if epoch < self.epochs)
        return None if contradicts(self.total_work, seen) else self.total_work

    @property
    def knows_work(self) -> bool:
        """Whether a job's total work is known: stated, reported, or seen of a whole job."""
        stated = self.profile is not None or self.total is not None or self.total_work is not None
        return stated or bool(self.work) or self.gpu_s.weight > 0

    def _work(self, tables: Mapping[GpuName, Floats]) -> Floats:
        """Units of every epoch: a stated work counts as one job; where none is, the first job's
        counts."""
        stated = self._stated_work()
        seen = {epoch: mean for epoch, mean in list(self.work.items()) if epoch < self.epochs}
        if stated is not None:
            return np.array([seen.get(j, Mean()).after(stated[j]) for j in range(self.epochs)])
        if seen:
            usual = sum(mean.value for mean in seen.values()) / len(seen)
        else:
            usual = self._silent_s * _per_gpu(tables) / self.epochs
        return np.array([seen[j].value if j in seen else usual for j in range(self.epochs)])

    @property
    def _silent_s(self) -> Seconds:
        """Seconds that a job which reports nothing trains on one GPU: its start is not in it."""
        if not self.gpu_s.value:
            return GPU_S
        whole = self.whole.mean.value
        return self.gpu_s.value * (1.0 - min(self.rescale_s / whole, 0.5) if whole > 0 else 1.0)


def _per_gpu(tables: Mapping[GpuName, Floats]) -> float:
    """Units per second and GPU at the least width of the first type."""
    for table in tables.values():
        rates = table.mean(axis=0).max(axis=0)
        least = int(np.argmax(rates > 0))
        return float(rates[least]) / least
    return 1.0
