"""The table of policies on fixed clusters."""

from collections.abc import Mapping
from typing import Any

from boa.paper import rivals


def doc(knob: float, gpus: float, jct_s: float) -> dict[str, Any]:
    return {
        "run": {"knob": knob},
        "spend_per_hour": gpus,
        "average_jct_s": jct_s,
        "average_queueing_s": 0.0,
    }


def test_clusters_are_told_by_their_sizes_even_where_the_smaller_holds_more_gpus() -> None:
    """Jobs that wait pile up, and keep a small cluster busy for longer."""
    found: dict[str, list[Mapping[str, Any]]] = {
        "gavel": [doc(2.5, 159, 4080), doc(1.6, 167, 17400)]
    }
    table = rivals._fixed_table(found, {"gavel": None})
    (row,) = table.rows
    assert row[1:3] == ["290 and 68", "167 and 159"]
    assert "1.6 and 2.5 times" in table.title
