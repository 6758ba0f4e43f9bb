"""The profile file: how fast a class trains, as `boa replay` writes it and `boa.yaml` names it.

`boa.train.replay` reads the same JSON by itself, for it may not import any of this.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from boa.errors import InputError
from boa.formats import checks
from boa.formats.fields import VERSION, check_version, class_name, fields, printable
from boa.formats.files import read_document
from boa.formats.job import MAX_EPOCHS, MAX_JOB_GPUS
from boa.model.profile import ClassProfile
from boa.model.speedup import Floats

ROWS = ("one_node", "across")
"""As in `ClassProfile.rates`: on one node, and across nodes."""


def load_profile(path: str | Path) -> ClassProfile:
    """Read a profile file (YAML or JSON)."""
    return read_profile(read_document(path))


def read_profile(document: Any, path: str = "") -> ClassProfile:
    """A profile from plain mappings and lists, as YAML and JSON give them."""
    given = fields(
        document, path, required=("class", "work", "rates"), optional=("version", "rescale_s")
    )
    check_version(given, path)

    def at(name: str) -> str:
        return checks.joined(path, name)

    work = checks.sequence(given["work"], at("work"))
    if len(work) > MAX_EPOCHS:
        raise InputError(at("work"), f"{len(work):,} epochs", f"at most {MAX_EPOCHS:,} epochs")
    return ClassProfile(
        name=class_name(given["class"], at("class")),
        work=tuple(checks.number(w, f"{at('work')}[{j}]", above=0) for j, w in enumerate(work)),
        rates={
            printable(gpu, at("rates")): _rates(rows, f"{at('rates')}.{gpu}", len(work))
            for gpu, rows in checks.named(given["rates"], at("rates")).items()
        },
        rescale_s=checks.number(given.get("rescale_s", 0.0), at("rescale_s"), least=0),
    )


def _rates(value: Any, path: str, epochs: int) -> Floats:
    rows = fields(value, path, required=ROWS)
    tables = {row: _table(rows[row], f"{path}.{row}", epochs) for row in ROWS}
    widths = {row: table.shape[1] for row, table in tables.items()}
    if len(set(widths.values())) > 1:
        raise InputError(path, widths, "as many widths across nodes as on one")
    return np.stack([tables[row] for row in ROWS], axis=1)


def _table(value: Any, path: str, epochs: int) -> Floats:
    """Epochs × (K + 1), from lists that begin at width 1."""
    lines = checks.sequence(value, path)
    if len(lines) != epochs:
        raise InputError(path, f"{len(lines)} lists", f"one list per epoch in work: {epochs}")
    table: list[list[float]] = []
    for j, line in enumerate(lines):
        here = f"{path}[{j}]"
        rates = checks.sequence(line, here)
        if len(rates) > MAX_JOB_GPUS or len(rates) != len(lines[0]):
            expected = f"a rate per width 1, 2, … (at most {MAX_JOB_GPUS}), as many as in epoch 0"
            raise InputError(here, f"{len(rates)} rates", expected)
        table.append(
            [0.0, *(checks.number(s, f"{here}[{k}]", least=0) for k, s in enumerate(rates))]
        )
    return np.array(table)


def profile_document(profile: ClassProfile) -> dict[str, Any]:
    """The profile as JSON has it; `read_profile` gives the same profile back."""
    return {
        "version": VERSION,
        "class": profile.name,
        "rescale_s": profile.rescale_s,
        "work": list(profile.work),
        "rates": {gpu: _document(table) for gpu, table in profile.rates.items()},
    }


def _document(table: Floats) -> Mapping[str, Any]:
    return {row: table[:, n, 1:].tolist() for n, row in enumerate(ROWS)}
