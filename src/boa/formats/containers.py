"""Shapes made of other shapes: lists, mappings, objects, and values of one kind or another."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from boa.formats.shapes import LEFT_OUT, BeyondSchema, Field, Schema, Shape, Wrong, cut, step

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


def list_of(
    entry: Shape[T],
    *,
    least: int = 1,
    most: int | None = None,
    unique: str = "",
    first: Shape[T] | None = None,
    expected: str = "",
    words: str = "",
) -> Shape[tuple[T, ...]]:
    """A list. `unique`: how the error begins if an entry occurs twice; `first`: of the first entry,
    if it may be less than others."""
    take_entry, rest = entry.take, 0 if first is None else 1
    expected = expected or f"a list{_count(least, most)}"

    def take(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list) or len(value) < least or _more(value, most):
            raise Wrong(value, expected)
        made: list[T] = []
        try:
            if first is not None:
                made.append(first.take(value[0]))
            made.extend(map(take_entry, value[rest:]))
        except Wrong as wrong:
            raise wrong.within(f"[{len(made)}]") from None  # those before it are in the list
        if unique and len(set(made)) < len(made):
            raise Wrong(value, unique)
        return tuple(made)

    schema: Schema = {"type": "array", "items": entry.schema}
    schema |= {"minItems": least} if least else {}
    schema |= {"maxItems": most} if most is not None else {}
    schema |= {"uniqueItems": True} if unique else {}
    schema |= {"prefixItems": [first.schema]} if first else {}
    said = words or f"list of {_several(entry)}"
    return Shape(take, schema, said, entry.fields, f"[]{entry.step}")


def mapping_of(
    key: Shape[K],
    value: Shape[V],
    *,
    called: str,
    least: int = 1,
    most: int | None = None,
    expected: str = "",
    words: str = "",
) -> Shape[dict[K, V]]:
    """A mapping whose keys are free; `called` stands for them in the documentation."""
    take_key, take_value = key.take, value.take
    expected = expected or f"a mapping{_count(least, most)}"

    def take(given: Any) -> dict[K, V]:
        if not isinstance(given, dict) or len(given) < least or _more(given, most):
            raise Wrong(given, expected)
        made: dict[K, V] = {}
        name: Any = None
        try:
            for name, one in given.items():
                key_read = take_key(name)
                made[key_read] = take_value(one)
        except Wrong as wrong:
            raise wrong.within(step(name)) from None
        if len(made) < len(given):
            raise BeyondSchema(given, f"each {called} once")
        return made

    schema: Schema = {"type": "object", "propertyNames": _bare(key.schema)}
    schema |= {"additionalProperties": value.schema}
    schema |= {"minProperties": least} if least else {}
    schema |= {"maxProperties": most} if most is not None else {}
    held = f"by {called}" if value.fields else f"from {called} to {value.words}"
    said = words or f"mapping {held}"
    return Shape(take, schema, said, value.fields, f".{called}{value.step}")


def object_of(
    *fields: Field,
    make: Callable[..., T],
    one_of: Sequence[str] = (),
    at_most_one: Sequence[str] = (),
    open_to_more: bool = False,
    expected: str = "a mapping",
    words: str = "mapping",
) -> Shape[T]:
    """An object with exactly these fields, made into a value by their names. `open_to_more`: it may
    say other things too, which nobody reads."""
    known = frozenset(field.name for field in fields)
    required = frozenset(field.name for field in fields if field.required)
    read = [(f.name, _attribute(f), f.shape.take) for f in fields if not f.told]
    defaults = {_attribute(f): f.default for f in fields if f.default is not LEFT_OUT}
    dropped = any(attribute is None for _, attribute, _ in read)

    def take(value: Any) -> T:
        if not isinstance(value, dict):
            raise Wrong(value, expected)
        given = value.keys()
        if not (given <= known or open_to_more) or not required <= given:
            raise misfit(value, fields, open_to_more)
        if one_of and sum(name in value for name in one_of) != 1:
            raise Wrong(value, f"exactly one of {', '.join(one_of)}")
        if at_most_one and all(name in value for name in at_most_one):
            last = at_most_one[-1]
            raise Wrong(value[last], f"only one of {' and '.join(at_most_one)}", at=f".{last}")
        made = defaults.copy()
        name = ""
        try:
            for name, attribute, take_one in read:
                if name in value:
                    made[attribute] = take_one(value[name])
        except Wrong as wrong:
            raise wrong.within(f".{name}") from None
        if dropped:
            made.pop(None, None)
        return make(**made)

    schema: Schema = {"type": "object", "required": [f.name for f in fields if f.required]}
    schema |= {"properties": {field.name: _schema(field) for field in fields}}
    schema |= {} if open_to_more else {"additionalProperties": False}
    schema |= {"oneOf": [{"required": [name]} for name in one_of]} if one_of else {}
    schema |= {"not": {"type": "object", "required": list(at_most_one)}} if at_most_one else {}
    return Shape(take, schema, words, fields)


def as_given(**values: Any) -> dict[str, Any]:
    """Fields as read: the value of an object that has no type of its own."""
    return values


def either(shapes: Mapping[type, Shape[Any]], *, expected: str = "") -> Shape[Any]:
    """A value of one type or another, each with a shape of its own; 3.0 is a whole number, as in
    JSON Schema."""
    takes = {kind: shape.take for kind, shape in shapes.items()}
    parts = list({id(shape): shape for shape in shapes.values()}.values())
    words = ", or ".join(shape.words for shape in parts)

    def take(value: Any) -> Any:
        take_it = takes.get(type(value))
        if take_it is None and type(value) is float and value.is_integer():
            take_it = takes.get(int)
        if take_it is None:
            raise Wrong(value, expected or words)
        return take_it(value)

    return Shape(take, {"anyOf": [shape.schema for shape in parts]}, words)


def misfit(value: Mapping[Any, Any], fields: Sequence[Field], open_to_more: bool = False) -> Wrong:
    """The wrong name in a mapping, or the missing one; for a misspelt name, the one meant."""
    from difflib import get_close_matches

    names = [field.name for field in fields]
    for key in () if open_to_more else value:
        if key not in names:
            name = cut(key)
            near = [n for n in names if n.startswith(name)] or get_close_matches(name, names, 1)
            problem = f"unknown field, perhaps {near[0]} is meant" if near else "unknown field"
            return Wrong(value[key], f"one of {', '.join(sorted(names))}", problem, step(key))
    required = [field.name for field in fields if field.required]
    missing = next(name for name in required if name not in value)
    return Wrong(None, f"the fields {', '.join(sorted(required))}", "missing", step(missing))


def _attribute(field: Field) -> Any:
    return field.name if field.to == "" else field.to


def _schema(field: Field) -> Schema:
    said: Schema = {"description": field.meaning, **field.shape.schema}
    said |= {"default": field.default} if field.default is not LEFT_OUT else {}
    return said | ({"examples": [field.example]} if field.example is not LEFT_OUT else {})


def _bare(schema: Schema) -> Schema:
    """Without the type: names in JSON are text."""
    return {word: limit for word, limit in schema.items() if word != "type"}


def _count(least: int, most: int | None) -> str:
    if most is not None:
        return f" with {least} to {most:,} entries"
    return " with at least one entry" if least else ""


def _several(shape: Shape[Any]) -> str:
    return re.sub(r"^(list|mapping|(whole )?number)", r"\1s", shape.words)


def _more(value: Sequence[Any] | Mapping[Any, Any], most: int | None) -> bool:
    return most is not None and len(value) > most
