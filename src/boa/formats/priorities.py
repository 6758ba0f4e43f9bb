"""Fields of `boa.yaml` on how much jobs of every priority count."""

from boa.formats.containers import object_of
from boa.formats.shapes import Field, number
from boa.model.priorities import Priorities

MOST = 1000.0
PRIORITY_WEIGHTS = Field(
    "priorities",
    object_of(
        Field(
            "urgent",
            number(least=1, most=MOST),
            "Times a normal job's that a second of an urgent one counts.",
            default=Priorities().urgent,
        ),
        make=Priorities,
    ),
    "How much jobs count that are submitted with a priority; see [priorities](priorities.md).",
    otherwise=f"`{{urgent: {Priorities().urgent:g}}}`",
)
