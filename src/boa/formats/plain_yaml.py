"""YAML to plain values: as `yaml.load`, but tens of times as fast and a little stricter.

PyYAML builds a node per scalar and resolves each by regular expressions. Workload files are tens
of thousands of numbers in plain mappings and lists, so here the parser's events go straight into
values, and each distinct scalar is resolved once. Tables of numbers, {1: 1, 2: 1.9, 4: 3.4}, are
not even shown to the parser: JSON reads them, and a mark stands for each in what YAML gets to
see. Whatever is not plain (anchors, tags, merge keys, several documents) is left to `yaml.load`.
"""

import json
import re
from typing import Any

import yaml

from boa.errors import shown

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(_Base):  # type: ignore[misc]
    """PyYAML's safe loader, but 1e-6 is a number (as in YAML 1.2), no key may occur twice, and a
    day that is on no calendar is text: whoever reads the field says so."""

    def construct_yaml_timestamp(self, node: Any) -> Any:
        try:
            return super().construct_yaml_timestamp(node)
        except ValueError:
            return node.value

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [k.value for k, _ in node.value if k.tag != _MERGE and not isinstance(k.value, list)]
        _refuse_twice(keys, node.start_mark.line)
        return super().construct_mapping(node, deep)


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_yaml_timestamp)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+0123456789."),
)


_TABLE = re.compile(r"\{([0-9][-0-9.eE+:, ]*)\}")
_MARK = "\ue000"
"""A character for private use. Text that has it is read without marks."""


class _NotPlainError(Exception):
    """Something that only the whole of YAML can read."""


def load_yaml(text: str) -> Any:
    """The value of the one document in the text; None if there is none."""
    try:
        return _load_plain(text)
    except _NotPlainError:
        return yaml.load(text, Loader=_Loader)


def _load_plain(text: str) -> Any:
    short, tables = _without_tables(text)
    if tables:
        try:
            return _load_events(short, tables)
        except (yaml.YAMLError, ValueError, _NotPlainError):
            pass  # wherever it went wrong, the whole text says it better
    return _load_events(text, {})


def _without_tables(text: str) -> tuple[str, dict[str, Any]]:
    """The text with marks in place of tables of numbers, and the table of every mark."""
    tables: dict[str, Any] = {}

    def marked(found: re.Match[str]) -> str:
        pairs = found[1].replace(", ", "],[").replace(": ", ",")
        try:
            points = json.loads(f"[[{pairs}]]")
            table = dict(points)
        except ValueError:  # no table, or 010 and the like: YAML knows what it is
            return found[0]
        if len(table) < len(points):
            return found[0]
        mark = f"{_MARK}{len(tables)}{_MARK}"
        tables[mark] = table
        return mark

    return (text, {}) if _MARK in text else (_TABLE.sub(marked, text), tables)


def _load_events(text: str, tables: dict[str, Any]) -> Any:
    """`tables`: what the marks in the text stand for."""
    loader = _Loader(text)
    scalars = dict(tables)
    values: list[Any] = []
    """Content of the innermost open collection so far; of a mapping key, value, key, ..."""
    outer: list[list[Any]] = []
    lines: list[int] = []
    documents = 0
    try:
        while (event := loader.get_event()) is not None:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                if event.anchor is not None or event.tag is not None:
                    raise _NotPlainError
                raw = event.value
                if event.implicit[0] and raw in scalars:
                    values.append(scalars[raw])
                elif tables and _MARK in raw:  # it stood in a text, not for a value
                    raise _NotPlainError
                elif not event.implicit[0]:  # quoted
                    values.append(raw)
                else:
                    values.append(scalars.setdefault(raw, _resolved(loader, raw)))
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if event.anchor is not None or event.tag is not None:
                    raise _NotPlainError
                outer.append(values)
                lines.append(event.start_mark.line)
                values = []
            elif kind is yaml.SequenceEndEvent:
                lines.pop()
                inner, values = values, outer.pop()
                values.append(inner)
            elif kind is yaml.MappingEndEvent:
                inner, values = values, outer.pop()
                values.append(_mapping(inner, lines.pop()))
            elif kind is yaml.AliasEvent:
                raise _NotPlainError
            elif kind is yaml.DocumentStartEvent:
                documents += 1
    finally:
        loader.dispose()
    if documents > 1:
        raise _NotPlainError
    return values[0] if values else None


def _mapping(flat: list[Any], line: int) -> dict[Any, Any]:
    try:
        found = dict(zip(flat[::2], flat[1::2], strict=True))
    except TypeError:  # a key that is a list or a mapping: PyYAML words the error
        raise _NotPlainError from None
    if len(found) < len(flat) // 2:
        _refuse_twice(flat[::2], line)
    return found


def _refuse_twice(keys: list[Any], line: int) -> None:
    """PyYAML would silently keep the last."""
    seen = set()
    for key in keys:
        if key in seen:
            where = f"the mapping that begins in line {line + 1}"
            raise ValueError(f"the key {shown(key)} occurs twice in {where}")
        seen.add(key)


def _resolved(loader: Any, raw: str) -> Any:
    tag = loader.resolve(yaml.ScalarNode, raw, (True, False))
    if tag == _MERGE:
        raise _NotPlainError
    return loader.construct_object(yaml.ScalarNode(tag, raw))
