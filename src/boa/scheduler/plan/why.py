"""Why a class has the widths that it has: time against money. Pure.

A plan minimises Σ w_i λ_i E[T_i] / Σ w λ within its budget; with the shadow price μ of the budget
that is, for every job of class i alone (see `policy/courses.py`),

    w_i / Σ w λ · time  +  μ · cost

so a job of the class takes more GPUs as long as a dollar saves at least μ · Σ w λ / w_i seconds:
the class's *exchange rate*. Time and cost are those of a whole stretch of epochs between two
rescalings, the rescaling at its beginning included: at the planned width no other one has a lower
time + rate · cost. (If another width is that of the stretch next to it, a rescaling would be saved
on top; that the plan is optimal says that even this does not pay.)
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from boa.api.classes import ClassDocument, ClassOnType, Sample
from boa.model.cluster import Allocation
from boa.model.plan import Variant
from boa.model.speedup import Floats
from boa.model.streams import class_of
from boa.model.workload import JobClass
from boa.scheduler.learn.widths import DOUBLING
from boa.scheduler.words.amounts import dollars, seconds
from boa.solver.objective import cost_rates, rescale_time, run_times
from boa.solver.solution import Solution
from boa.units import GpuName, Seconds, Usd

MOST_WIDTHS = 64
"""Widths of a stretch that are told, at most."""
AS_GOOD = 1e-3
"""Part by which what a dollar saves may differ and still be worded as the same."""
WORTH_A_WORD = 0.005
"""Part of a class's jobs below which a variant only makes the spend come out exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WidthChoice:
    width: int
    time_s: Seconds
    cost_usd: Usd
    saves_s: Seconds | None = None
    """Against the next narrower width."""
    extra_usd: Usd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochChoice:
    """Epochs in a row that have one width in the plan."""

    first_epoch: int
    last_epoch: int
    width: int
    choices: tuple[WidthChoice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantChoice:
    share: float
    gpu_type: GpuName
    epochs: tuple[EpochChoice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    name: str
    seconds_per_usd: float
    words: tuple[str, ...]
    variants: tuple[VariantChoice, ...]


def why(
    solution: Solution,
    name: str,
    document: ClassDocument | None = None,
    running: Iterable[Allocation] = (),
) -> Why | None:
    """Reasons for the widths of a class or a stream; where several pay for a class, those of the
    jobs that come most often. None: the plan does not know it. `document`: what was measured of
    the class, to tell of widths that no plan may use yet. `running`: GPUs of its running jobs."""
    streams = [c for c in solution.workload.classes if name in (c.name, class_of(c.name))]
    job_class = max(streams, key=lambda stream: stream.arrivals_per_hour, default=None)
    if job_class is None:
        return None
    name, rate = job_class.name, exchange_rate(solution, job_class)
    variants, words = [], []
    told = [v for v in solution.plan[name].variants if v.share >= WORTH_A_WORD]
    for variant in solution.plan[name].variants:
        epochs = []
        for first, end, gpu, width in variant.stretches():
            choices = _choices(solution, job_class, first, end, gpu, int(width))
            epochs.append(
                EpochChoice(
                    first_epoch=first, last_epoch=end - 1, width=int(width), choices=choices
                )
            )
            if variant in told:
                more = "" if document is None else wider(document, gpu, choices[-1].width)
                words.append(_said(variant, told, epochs[-1], gpu, rate, more))
        variants.append(
            VariantChoice(share=variant.share, gpu_type=variant.gpu_types[0], epochs=tuple(epochs))
        )
    words += _otherwise(solution.plan[name].variants, running, document)
    return Why(name=name, seconds_per_usd=rate, words=tuple(words), variants=tuple(variants))


def exchange_rate(solution: Solution, job_class: JobClass) -> float:
    """Seconds that a dollar must save at least to be spent on a job of this class."""
    total = solution.workload.weighted_arrivals_per_hour
    return solution.shadow_price * total / job_class.weight


def _choices(
    solution: Solution, job_class: JobClass, first: int, end: int, gpu: GpuName, planned: int
) -> tuple[WidthChoice, ...]:
    epochs, rules = job_class.epochs[first:end], solution.rules
    widths = _widths(job_class, first, end, gpu, planned)
    times = run_times(epochs, gpu, widths).sum(axis=0) + rescale_time(job_class, rules)
    costs = times * cost_rates(widths, solution.workload.gpu_types[gpu], rules.billing)
    found: list[WidthChoice] = []
    for width, time, cost in zip(widths.tolist(), times.tolist(), costs.tolist(), strict=True):
        narrower = found[-1] if found else None
        found.append(
            WidthChoice(
                width=int(width),
                time_s=time,
                cost_usd=cost,
                saves_s=None if narrower is None else narrower.time_s - time,
                extra_usd=None if narrower is None else cost - narrower.cost_usd,
            )
        )
    return tuple(found)


def _widths(job_class: JobClass, first: int, end: int, gpu: GpuName, planned: int) -> Floats:
    """Those that the class may use in all of these epochs; if there are many, the planned one,
    those beside it, and of the others ever fewer the wider they get."""
    bases = (job_class.base_on(gpu, epoch) for epoch in job_class.epochs[first:end])
    least = max(base or 1 for base in bases)
    most = max(job_class.max_on(gpu), planned)
    if most - least < MOST_WIDTHS:
        return np.arange(least, most + 1, dtype=float)
    near = [k for k in (planned - 1, planned, planned + 1) if least <= k <= most]
    far = np.geomspace(least, most, MOST_WIDTHS - len(near)).round()
    return np.unique(np.concatenate([far, np.array(near, dtype=float)]))


# In words


def wider(document: ClassDocument, gpu: GpuName, most: int) -> str:
    """Return why plans use no wider width than this on a GPU type, by the same figures that the
    class is shown with; empty where that is its own limit."""
    kind = next((one for one in document["gpu_types"] if one["name"] == gpu), None)
    if kind is None or most >= document["gpus"]["max"]:
        return ""
    measured: dict[int, list[Sample]] = {}
    for sample in kind["samples"]:
        if sample["width"] > most and sample["measured_speedup"] is not None:
            measured.setdefault(sample["width"], []).append(sample)
    said = [_measured(document, kind, width, found) for width, found in sorted(measured.items())]
    said += [
        f"{failed['width']} GPUs: jobs failed there ({failed['reason']})."
        for failed in kind["failed"]
        if failed["width"] > most and failed["width"] not in measured
    ]
    if not said and kind["offered"] > most:
        return f"{kind['offered']} GPUs: not tried yet; one job in five tries them if that pays."
    if not said and not kind["tried"]:
        return "More GPUs are tried once its jobs report progress."
    return " ".join(said)


def _measured(
    document: ClassDocument, kind: ClassOnType, width: int, samples: Sequence[Sample]
) -> str:
    """Return what was measured at a width, and why no plan uses it."""
    best = max(samples, key=lambda sample: sample["seconds"])
    lasted, enough = sum(sample["seconds"] for sample in samples), document.get("settle_s")
    least = kind["measured_from"]
    against = "" if least == 1 else f" those of {least}"
    speedup = f"{width} GPUs: {best['measured_speedup']:.3g}×{against}"
    if enough is not None and width not in kind.get("settled", ()):
        said = f"{speedup} so far, measured for {seconds(lasted)} of {seconds(enough)}"
        trials = kind["offered"] >= width
        return f"{said}; until then {'one job in five gets them' if trials else 'none gets them'}."
    said = f"{speedup}, measured for {seconds(lasted)}"
    if kind["offered"] >= width:
        return f"{said}; the next plan may use them."
    return f"{said}; too little: twice the GPUs must make jobs {100 * (DOUBLING - 1):.0f} % faster."


def _otherwise(
    variants: Sequence[Variant], running: Iterable[Allocation], document: ClassDocument | None
) -> list[str]:
    """Return why running jobs have other GPUs than the plan gives."""
    planned = {(gpu, int(width)) for variant in variants for *_, gpu, width in variant.stretches()}
    held = Counter((one.gpu, one.width) for one in running)
    others = {at: count for at, count in held.items() if at not in planned}
    return [
        f"{count} running job{'s have' if count > 1 else ' has'} {width}×{gpu}: "
        f"{_why_other(gpu, width, planned, document)}."
        for (gpu, width), count in sorted(others.items())
    ]


def _why_other(
    gpu: GpuName,
    width: int,
    planned: Collection[tuple[GpuName, int]],
    document: ClassDocument | None,
) -> str:
    widths = [k for kind, k in planned if kind == gpu]
    if not widths:
        return "the GPUs of the plan are short"
    if width < max(widths):
        return "GPUs are short"
    kinds = () if document is None else document["gpu_types"]
    kind = next((one for one in kinds if one["name"] == gpu), None)
    if kind is not None and width not in kind.get("settled", [width]):
        return "a trial of that width"
    return "more GPUs are free there than the plan needs"


def _said(
    variant: Variant,
    told: Sequence[Variant],
    stretch: EpochChoice,
    gpu: GpuName,
    rate: float,
    more_gpus: str,
) -> str:
    """`more_gpus`: of widths that no plan may use yet."""
    who = f"For {100 * variant.share:.3g} % of its jobs the" if len(told) > 1 else "The"
    where = f"{who} plan gives {_epochs(stretch, len(variant.widths))}{stretch.width}×{gpu}: "
    said = where + _of_choices(stretch, rate, "that it may use now" if more_gpus else "")
    return f"{said} {more_gpus}" if more_gpus else said


def _of_choices(stretch: EpochChoice, rate: float, now: str) -> str:
    planned = next(c for c in stretch.choices if c.width == stretch.width)
    others = [c for c in stretch.choices if c.width != stretch.width]
    if not others:
        return "no other width is measured yet." if now else "its jobs may have no other width."
    if rate <= 0:
        return f"the fastest {now or 'there is'}; the budget is no limit."
    less, more = _cheaper(planned, others), _faster(planned, others)
    elsewhere = f"elsewhere a dollar saves {seconds(rate)}"
    if less is None:
        said = f"the cheapest there is; {elsewhere}."
    else:
        saves, extra = less.time_s - planned.time_s, planned.cost_usd - less.cost_usd
        just = "just " if _as_good(saves, extra, rate) else ""
        said = f"going from {less.width} to {planned.width} saves {_bought(saves, extra)}, "
        said += f"{just}worth it: {elsewhere}."
    if more is None:
        return f"{said} No other width {now + ' ' if now else ''}is faster."
    saves, extra = planned.time_s - more.time_s, more.cost_usd - planned.cost_usd
    again = "" if less is None else "another "
    verdict = (
        "as good, but the budget is used up" if _as_good(saves, extra, rate) else "not worth it"
    )
    return f"{said} {more.width} would save {again}{_bought(saves, extra)}: {verdict}."


def _epochs(stretch: EpochChoice, epochs: int) -> str:
    """Counted from 1, as people do; empty: the whole job."""
    first, last = stretch.first_epoch + 1, stretch.last_epoch + 1
    if last - first + 1 == epochs:
        return ""
    return f"epoch {first} " if first == last else f"epochs {first}–{last} "


def _bought(saves: Seconds, extra: Usd) -> str:
    return f"{seconds(saves)} for {dollars(extra)} ({seconds(saves / extra)} per dollar)"


def _as_good(saves: Seconds, extra: Usd, rate: float) -> bool:
    """Where a class has two variants, the budget ends between them: at equal worth."""
    return abs(saves - rate * extra) <= AS_GOOD * abs(rate * extra)


def _cheaper(planned: WidthChoice, others: Sequence[WidthChoice]) -> WidthChoice | None:
    """The cheaper width that loses least time for the money saved."""
    return min(
        (c for c in others if c.cost_usd < planned.cost_usd),
        key=lambda c: (c.time_s - planned.time_s) / (planned.cost_usd - c.cost_usd),
        default=None,
    )


def _faster(planned: WidthChoice, others: Sequence[WidthChoice]) -> WidthChoice | None:
    """The faster width that saves most for the money it costs."""
    return max(
        (c for c in others if c.time_s < planned.time_s and c.cost_usd > planned.cost_usd),
        key=lambda c: (planned.time_s - c.time_s) / (c.cost_usd - planned.cost_usd),
        default=None,
    )
