"""The summary of all results: read as what somebody may have changed, written without NaN."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boa.errors import FileError
from boa.paper.records import DAMAGED, read_json
from boa.paper.study import Scale

SUMMARY = "summary.json"
EXPECTED = "the results of `boa paper run` or `boa paper all`"
WORDS = ("name", "where", "scale", "claim", "measured", "verdict", "reason")
"""Fields of an entry that are text."""


def read_summary(folder: Path) -> dict[str, Any]:
    path = folder / SUMMARY
    try:
        found = read_json(path)
        whole = _is_summary(found) and finite(found) == found
        json.dumps(found, ensure_ascii=False).encode("utf-8")  # half a character is none
    except FileNotFoundError:
        raise FileError(str(path), "no such file", EXPECTED) from None
    except DAMAGED:
        whole = False
    if not whole:
        raise FileError(str(path), "is damaged, or no summary", EXPECTED)
    return dict(found)


def begun(folder: Path, scale: Scale) -> dict[str, Any]:
    """The summary so far: other studies' entries of the same scale stay."""
    entries = read_summary(folder)["studies"] if (folder / SUMMARY).exists() else {}
    kept = {name: entry for name, entry in entries.items() if entry["scale"] == scale.name}
    return {"version": 1, "scale": scale.name, "newtrace": scale.newtrace, "studies": kept}


def finite(value: Any) -> Any:
    """The same, with None for each number that JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value


def _is_summary(found: Any) -> bool:
    if not isinstance(found, dict) or not isinstance(found.get("studies"), dict):
        return False
    return all(_is_entry(name, entry) for name, entry in found["studies"].items())


def _is_entry(name: str, entry: Any) -> bool:
    if not isinstance(entry, dict) or not _are_words([entry.get(word) for word in WORDS]):
        return False
    tables = entry.get("tables", [])
    return entry["name"] == name and isinstance(tables, list) and all(map(_is_table, tables))


def _is_table(table: Any) -> bool:
    if not isinstance(table, dict) or set(table) != {"title", "heads", "rows"}:
        return False
    if not isinstance(table["title"], str) or not isinstance(table["rows"], list):
        return False
    return all(_are_words(row) for row in (table["heads"], *table["rows"]))


def _are_words(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
