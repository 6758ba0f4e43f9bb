"""What was learned of a class, as one JSON document: what `boa show CLASS` prints and plots.

Speedups are those of the whole training at one width throughout, against the least width of the
first GPU type: s(k) = T(least) / T(k).
"""

import math
from typing import Any

import numpy as np

from boa.control.curves import Point
from boa.control.known import Known, Picture
from boa.model.speedup import Floats
from boa.units import GpuName, Seconds


def document_of(known: Known, now: Seconds) -> dict[str, Any]:
    picture, gpus = known.picture, known.gpus
    whole = {gpu: _training(picture, table) for gpu, table in picture.tables.items()}
    unit = _least_time(whole)
    return {
        "class": known.name,
        "prior": prior_in_words(known),
        "jobs": known.jobs,
        "succeeded": known.ended,
        "gpus": {"min": gpus.min, "max": gpus.max, "types": list(gpus.types)},
        "weight": known.weight,
        "arrivals_per_hour": known.arrivals.per_hour(now),
        "rescale_s": known.rescale_s,
        "epochs": known.epochs,
        "work": picture.work.tolist(),
        "gpu_types": [_type_document(known, picture, gpu, whole[gpu], unit) for gpu in whole],
    }


def _training(picture: Picture, table: Floats) -> Floats:
    """Seconds of the whole training, 2 × (K + 1); infinite where it cannot run."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.tensordot(picture.work, 1.0 / table, axes=1))


def _least_time(whole: dict[GpuName, Floats]) -> Seconds:
    for times in whole.values():
        best = times.min(axis=0)
        return float(best[np.isfinite(best)][0])
    return 1.0


def _type_document(
    known: Known, picture: Picture, gpu: GpuName, whole: Floats, unit: Seconds
) -> dict[str, Any]:
    kind, curve = known.gpu_types[gpu], picture.curves.get(gpu)
    widths = np.arange(whole.shape[-1])
    packed = np.where(widths <= kind.gpus_per_node, whole[0], whole[1])
    runs = np.flatnonzero(np.isfinite(packed))
    total = float(picture.work.sum())
    points = [p for p in picture.learned.points if p.gpu == gpu]
    return {
        "name": gpu,
        "gpus_per_node": kind.gpus_per_node,
        "tried": known.tried.get(gpu, 0),
        "offered": 0 if curve is None else curve.widths[-1],
        "curve": {
            "widths": runs.tolist(),
            "speedup": (unit / packed[runs]).tolist(),
            "rate": (total / packed[runs]).tolist(),
        },
        "samples": [_sample_document(known, picture, p, whole, unit) for p in points],
    }


def _sample_document(
    known: Known, picture: Picture, point: Point, whole: Floats, unit: Seconds
) -> dict[str, Any]:
    """What was measured, over all epochs: its speedup is the curve's, off by as much as it is."""
    table = picture.learned.tables[point.gpu]
    units = seconds = expected = 0.0
    for cell in list(known.cells.values()):
        key = cell.key
        if (key.gpu, key.across, key.width) == (point.gpu, point.across, point.width):
            units += cell.units
            seconds += cell.seconds
            epoch = min(key.epoch, len(table) - 1)
            expected += cell.seconds * float(table[epoch, int(key.across), key.width])
    inside = point.width < whole.shape[-1]
    time = float(whole[int(point.across), point.width]) if inside else math.inf
    return {
        "width": point.width,
        "across_nodes": point.across,
        "rate": units / seconds,
        "seconds": seconds,
        "reports": point.reports,
        "speedup": unit / time * units / expected if math.isfinite(time) else None,
    }


def prior_in_words(known: Known) -> str:
    """Where the curves start from."""
    if known.profile is not None and known.prior is not None:
        weight = known.prior.measured_weight
        worth = f"worth {weight:g} reports at every width" if weight else "until it is measured"
        return f"the profile {known.profile.name} ({', '.join(known.profile.rates)}), {worth}"
    words = "perfect scaling until measured, at most twice the widest width tried"
    if known.total_work is not None:
        return f"{words}; total work {known.total_work:g} by its spec"
    if known.work:
        return words
    return f"{words}; an hour on one GPU until an epoch is done"
