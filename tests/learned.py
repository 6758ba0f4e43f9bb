"""Classes as the service has come to know them."""

from collections.abc import Sequence
from typing import Any, cast

from boa.api.classes import ClassDocument, ClassOnType


def learned(name: str, kinds: Sequence[ClassOnType] = (), **fields: Any) -> ClassDocument:
    """What is known of a class of one epoch; `kinds`: of its GPU types."""
    document: ClassDocument = {
        "class": name,
        "prior": "perfect scaling until measured",
        "jobs": 3,
        "succeeded": 2,
        "gpus": {"min": 1, "max": 4, "types": []},
        "weight": 1.0,
        "arrivals_per_hour": 2.0,
        "rescale_s": 30.0,
        "engine": "local",
        "rescaling": {},
        "epochs": 1,
        "work": [3600.0],
        "noise_scale": [None],
        "gpu_types": list(kinds),
    }
    return cast(ClassDocument, {**document, **fields})


def learned_on(name: str, **fields: Any) -> ClassOnType:
    """What is known of a class on a GPU type with four to a node."""
    kind: ClassOnType = {
        "name": name,
        "gpus_per_node": 4,
        "tried": 2,
        "offered": 4,
        "curve": {"widths": [1, 2, 4], "speedup": [1.0, 1.9, 3.4], "rate": [10.0, 19.0, 34.0]},
        "measured_from": 2,
        "samples": [
            {
                "width": 2,
                "across_nodes": False,
                "rate": 19.0,
                "seconds": 600.0,
                "reports": 60,
                "speedup": 1.9,
                "measured_speedup": 1.0,
            }
        ],
        "failed": [],
        "layouts": [],
    }
    return cast(ClassOnType, {**kind, **fields})
