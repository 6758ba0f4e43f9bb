"""The record of a class: how what is known of it is stored, and read back at the next start.

Measured cells are stored by themselves (`Profiler.drain`); what an older version has written is
understood.
"""

from collections.abc import Mapping
from typing import Any

from boa.goodput.belief import SERIAL
from boa.model.job import GpuLimits
from boa.model.layouts import trials_of
from boa.model.records import ClassRecord
from boa.scheduler.learn.class_knowledge import Known
from boa.scheduler.learn.fading_means import Arrivals, Mean
from boa.scheduler.learn.payers import Payers
from boa.scheduler.learn.placements_tried import PlacementsTried
from boa.scheduler.learn.rescaling import Rescalings, Timed, stored_before_engines
from boa.scheduler.learn.saving import Saving


def record_of(known: Known) -> ClassRecord:
    gpus, arrivals = known.gpus, known.arrivals
    return ClassRecord(
        name=known.name,
        document={
            "gpus": {"min": gpus.min, "max": gpus.max, "types": list(gpus.types)},
            "weight": known.weight,
            "epochs_said": known.epochs_said,
            "epochs_seen": known.epochs_seen,
            "total_work": known.total_work,
            "total": known.total,
            "arrivals": [arrivals.jobs, arrivals.hours, arrivals.at],
            "payers": dict(known.payers.weights),
            "work": {str(epoch): _pair(mean) for epoch, mean in known.work.items()},
            "rescalings": {
                engine: found.as_document() for engine, found in known.rescalings.items()
            },
            "saving": known.saving.as_document(),
            "noise": {str(epoch): _pair(mean) for epoch, mean in known.noise.items()},
            "gpu_s": _pair(known.gpu_s),
            "whole": known.whole.as_document(),
            "starts": known.starts.as_document(),
            "serial": known.serial,
            "jobs": known.jobs,
            "ended": known.ended,
            "placements": known.placements.as_document(),
            "layouts": [trial.as_row() for trial in known.layouts],
        },
    )


def _pair(mean: Mean) -> list[float]:
    return [mean.value, mean.weight]


def restore(known: Known, document: Mapping[str, Any]) -> None:
    """Take a class for what its record says."""
    gpus = document["gpus"]
    known.gpus = GpuLimits(min=gpus["min"], max=gpus["max"], types=tuple(gpus["types"]))
    known.weight, known.total_work = document["weight"], document["total_work"]
    known.total = document.get("total")
    known.epochs_said, known.epochs_seen = document["epochs_said"], document["epochs_seen"]
    known.arrivals = Arrivals(*document["arrivals"])
    known.payers = Payers(document.get("payers", {}))
    known.work = {int(epoch): Mean(*pair) for epoch, pair in document["work"].items()}
    known.gpu_s = Mean(*document["gpu_s"])
    if "whole" in document:
        known.whole = Timed.from_document(document["whole"])
    if "starts" in document:
        known.starts = Timed.from_document(document["starts"])
    known.serial = document.get("serial", SERIAL)
    if "rescalings" in document:
        kept = document["rescalings"].items()
        known.rescalings = {engine: Rescalings.from_document(found) for engine, found in kept}
    else:
        known.rescalings = stored_before_engines(Mean(*document["rescale"]))
    if "saving" in document:
        known.saving = Saving.from_document(document["saving"])
    noise = document.get("noise", {}).items()
    known.noise = {int(epoch): Mean(*pair) for epoch, pair in noise}
    known.jobs, known.ended = document["jobs"], document["ended"]
    if "placements" in document:
        known.placements = PlacementsTried.from_document(document["placements"])
    known.layouts = trials_of(document.get("layouts"))
    known.restored()
