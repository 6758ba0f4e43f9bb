"""A class as one JSON document, as `boa show CLASS` prints and plots it.

Speedups are those of the whole training at one width throughout, against the least width of the
first GPU type as it is believed to run: s(k) = T(least) / T(k), so s(least) = 1. Samples are held
against the same T(least).
"""

import math

import numpy as np

from boa.api.classes import ClassDocument, ClassOnType, FailedWidth, Sample, TriedLayout
from boa.model.layouts import fastest
from boa.model.speedup import Floats
from boa.scheduler.learn.class_knowledge import Known
from boa.scheduler.learn.curves import MeasuredWidth
from boa.scheduler.learn.picture import Picture
from boa.scheduler.learn.widths import enough_s
from boa.units import GpuName, Seconds


def document_of(known: Known, now: Seconds) -> ClassDocument:
    picture, gpus = known.picture, known.gpus
    whole = {gpu: _training(picture, table) for gpu, table in picture.tables.items()}
    unit = next((_least_time(_packed(known, gpu, times)) for gpu, times in whole.items()), 1.0)
    return {
        "class": known.name,
        "prior": prior_in_words(known),
        "jobs": known.jobs,
        "succeeded": known.ended,
        "gpus": {"min": gpus.min, "max": gpus.max, "types": list(gpus.types)},
        "weight": known.weight,
        "arrivals_per_hour": known.arrivals.per_hour(now),
        "rescale_s": known.rescale_s,
        "settle_s": enough_s(known.rescale_s),
        "engine": known.engine,
        "rescaling": {
            engine: {
                name: {"mean_s": timed.value, "count": timed.count}
                for name, timed in found.listed()
            }
            for engine, found in sorted(known.rescalings.items())
        },
        "epochs": known.epochs,
        "work": picture.work.tolist(),
        "work_known": known.knows_work,
        "noise_scale": [
            known.noise[epoch].value if epoch in known.noise else None
            for epoch in range(known.epochs)
        ],
        "gpu_types": [_type_document(known, picture, gpu, whole[gpu], unit) for gpu in whole],
    }


def _failed(known: Known, gpu: GpuName) -> list[FailedWidth]:
    """Failures that count for what the newest job runs."""
    return [
        {
            "width": found.place.width,
            "across_nodes": found.place.across,
            "times": found.times,
            "reason": found.reason,
            "said": found.said,
            "at": found.at,
            "job": found.job,
            "again_at": found.again_at,
        }
        for found in known.placements.standing()
        if found.place.gpu == gpu
    ]


def _training(picture: Picture, table: Floats) -> Floats:
    """Seconds of the whole training, 2 × (K + 1); infinite where it cannot run."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.tensordot(picture.work, 1.0 / table, axes=1))


def _packed(known: Known, gpu: GpuName, whole: Floats) -> Floats:
    """Seconds by width, on the fewest nodes."""
    widths = np.arange(whole.shape[-1])
    on_one = widths <= known.gpu_types[gpu].gpus_per_node
    return np.asarray(np.where(on_one, whole[0], whole[1]))


def _least_time(packed: Floats) -> Seconds:
    return float(packed[np.isfinite(packed)][0])


def _type_document(
    known: Known, picture: Picture, gpu: GpuName, whole: Floats, unit: Seconds
) -> ClassOnType:
    kind, curve = known.gpu_types[gpu], picture.curves.get(gpu)
    packed = _packed(known, gpu, whole)
    runs = np.flatnonzero(np.isfinite(packed))
    runs = np.array([k for k in runs if not _is_barred(known, picture, gpu, int(k))], dtype=np.intp)
    total = float(picture.work.sum())
    points = [p for p in picture.learned.points if p.gpu == gpu]
    samples = [_sample_document(known, p, whole, unit) for p in points]
    return {
        "name": gpu,
        "gpus_per_node": kind.gpus_per_node,
        "tried": known.tried.get(gpu, 0),
        "offered": 0 if curve is None else picture.widest(gpu),
        "settled": list(known.settled.get(gpu, ())),
        "curve": {
            "widths": runs.tolist(),
            "speedup": (unit / packed[runs]).tolist(),
            "rate": (total / packed[runs]).tolist(),
        },
        "measured_from": _held_against_each_other(samples),
        "samples": samples,
        "failed": _failed(known, gpu),
        "layouts": _layouts(known, gpu),
    }


def _layouts(known: Known, gpu: GpuName) -> list[TriedLayout]:
    best = {trial.key for trial in fastest(known.layouts).values()}
    found = [trial for trial in known.layouts if trial.gpu == gpu]
    found.sort(key=lambda trial: (trial.width, trial.nodes, trial.layout, trial.local_batch))
    return [
        {
            "width": trial.width,
            "nodes": trial.nodes,
            "layout": trial.layout,
            "local_batch": trial.local_batch,
            "passes": trial.passes,
            "batch": trial.batch,
            "step_s": trial.step_s,
            "samples_per_s": trial.samples_per_s or None,
            "peak_bytes": trial.peak_bytes,
            "out_of_memory": trial.out_of_memory,
            "fastest": trial.key in best,
            "why": trial.why,
        }
        for trial in found
    ]


def _is_barred(known: Known, picture: Picture, gpu: GpuName, width: int) -> bool:
    mask = picture.bars.all.get(gpu)
    if mask is None:
        return False
    across = width > known.gpu_types[gpu].gpus_per_node
    return bool(mask[int(across), min(width, mask.shape[1] - 1)])


def _held_against_each_other(samples: list[Sample]) -> int | None:
    """The least width measured; gives every sample its rate ÷ the one there, beside what it is
    against the curve."""
    usable = [
        (s["width"], s["across_nodes"], s["speedup"]) for s in samples if s["speedup"] is not None
    ]
    if not usable:
        return None
    width, _, least = min(usable)
    for sample in samples:
        speedup = sample["speedup"]
        sample["measured_speedup"] = None if speedup is None else speedup / least
    return width


def _sample_document(known: Known, point: MeasuredWidth, whole: Floats, unit: Seconds) -> Sample:
    """A measured point, over all epochs. The curve goes through it, but for what a profile that
    counts as measured holds it back by."""
    at = (point.gpu, point.across, point.width)
    cells = list(known.cells.values())
    mine = [cell for cell in cells if (cell.key.gpu, cell.key.across, cell.key.width) == at]
    seconds = sum(cell.seconds for cell in mine)
    held = known.prior.measured_weight if known.prior and known.profile is not None else 0.0
    ahead = math.exp(point.correction * held / point.reports)
    inside = point.width < whole.shape[-1]
    time = float(whole[int(point.across), point.width]) if inside else math.inf
    return {
        "width": point.width,
        "across_nodes": point.across,
        "rate": sum(cell.units for cell in mine) / seconds,
        "seconds": seconds,
        "reports": point.reports,
        "speedup": unit / time * ahead if math.isfinite(time) else None,
        "measured_speedup": None,
    }


def prior_in_words(known: Known) -> str:
    """Where the curves start from."""
    if known.profile is not None and known.prior is not None:
        weight = known.prior.measured_weight
        worth = f"worth {weight:g} reports at every width" if weight else "until it is measured"
        return f"the profile {known.profile.name} ({', '.join(known.profile.rates)}), {worth}"
    words = "the scaling of other classes until measured, wider only as it proves itself"
    if known.total is not None:
        return f"{words}; total work {known.total:g} by its script"
    if known.total_work is not None:
        return f"{words}; total work {known.total_work:g} by its spec"
    if known.work:
        return words
    return f"{words}; an hour on one GPU until an epoch is done"
