"""The profile file: how fast a class trains, as `boa replay` writes it and `boa.yaml` names it.

`boa.train.replay` reads the same JSON by itself, for it may not import any of this.
"""

from pathlib import Path
from typing import Any

import numpy as np

from boa.formats.containers import as_given, list_of, mapping_of, object_of
from boa.formats.files import read_document
from boa.formats.job import MAX_EPOCHS, MAX_JOB_GPUS
from boa.formats.parts import CLASS, LINE, VERSION, VERSION_1
from boa.formats.shapes import BeyondSchema, Field, Format, needed, number
from boa.model.profile import ClassProfile
from boa.model.speedup import Floats

ROWS = ("one_node", "across")
"""As in `ClassProfile.rates`: on one node, and across nodes."""
Rates = tuple[tuple[float, ...], ...]


def _profile(
    work: tuple[float, ...], rates: dict[str, dict[str, Rates]], **more: Any
) -> ClassProfile:
    tables = {}
    for gpu, rows in rates.items():
        for row, lines in rows.items():
            _check(lines, len(work), f".rates.{gpu}.{row}")
        widths = {row: len(lines[0]) for row, lines in rows.items()}
        if len(set(widths.values())) > 1:
            expected = "as many widths across nodes as on one"
            raise BeyondSchema(widths, expected, at=f".rates.{gpu}")
        # A row begins at width 1 in the file, and at 0 in memory.
        stacked = np.stack([np.array(rows[row]) for row in ROWS], axis=1)
        tables[gpu] = np.pad(stacked, ((0, 0), (0, 0), (1, 0)))
    return ClassProfile(work=work, rates=tables, **more)


def _check(lines: Rates, epochs: int, at: str) -> None:
    if len(lines) != epochs:
        raise BeyondSchema(f"{len(lines)} lists", f"one list per epoch in work: {epochs}", at=at)
    for j, line in enumerate(lines):
        if len(line) != len(lines[0]):
            expected = "a rate per width 1, 2, …, as many as in epoch 0"
            raise BeyondSchema(f"{len(line)} rates", expected, at=f"{at}[{j}]")


_TABLE = list_of(
    list_of(number(least=0), most=MAX_JOB_GPUS),
    most=MAX_EPOCHS,
    words=f"list of lists of up to {MAX_JOB_GPUS:,} numbers ≥ 0",
)
_ROWS = object_of(
    needed(
        "one_node",
        _TABLE,
        "On one node: for every epoch, units of progress per second at widths 1, 2, …; 0 where it "
        "cannot run. All lists are equally long.",
    ),
    needed("across", _TABLE, "The same across nodes."),
    make=as_given,
)
PROFILE = Format(
    "BOA class profile",
    "How fast a class trains: what a replay job acts out, and what a new class can start from "
    "(`classes` in boa.yaml).",
    object_of(
        VERSION_1,
        needed("class", CLASS, "The class.", to="name"),
        Field(
            "rescale_s",
            number(least=0),
            "Mean time of one rescaling; the first start is one.",
            default=0.0,
        ),
        needed(
            "work", list_of(number(above=0), most=MAX_EPOCHS), "Units of progress of every epoch."
        ),
        needed("rates", mapping_of(LINE, _ROWS, called="GPU"), "Rates by GPU type."),
        make=_profile,
    ),
)


def load_profile(path: str | Path) -> ClassProfile:
    """Read a profile file (YAML or JSON)."""
    return read_profile(read_document(path))


def read_profile(document: Any, path: str = "") -> ClassProfile:
    """A profile from plain mappings and lists, as YAML and JSON give them."""
    return PROFILE.shape.read(document, path)


def profile_document(profile: ClassProfile) -> dict[str, Any]:
    """The profile as JSON has it; `read_profile` gives the same profile back."""
    return {
        "version": VERSION,
        "class": profile.name,
        "rescale_s": profile.rescale_s,
        "work": list(profile.work),
        "rates": {gpu: _document(table) for gpu, table in profile.rates.items()},
    }


def _document(table: Floats) -> dict[str, Any]:
    return {row: table[:, n, 1:].tolist() for n, row in enumerate(ROWS)}
