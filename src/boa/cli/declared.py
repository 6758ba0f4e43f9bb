"""Options and arguments as a function's signature declares them, alone or in groups.

A group is a frozen dataclass whose fields are options: they stand in the command line one by one,
and the function gets one value.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

REQUIRED = inspect.Parameter.empty
"""The default of what has to be given."""


class Option:
    """`parser` makes the value of the text; `metavar` stands for the text in the help."""

    def __init__(
        self,
        *names: str,
        metavar: str = "",
        help: str = "",
        parser: Callable[[Any], Any] | None = None,
        min: int | None = None,
    ) -> None:
        self.names, self.metavar, self.help = names, metavar, help
        self.parser, self.min = parser, min


class Argument:
    """The same for a word that goes by its place."""

    def __init__(
        self, *, metavar: str, help: str = "", parser: Callable[[Any], Any] | None = None
    ) -> None:
        self.metavar, self.help, self.parser = metavar, help, parser


class Declared(NamedTuple):
    """One option or argument of a command."""

    name: str
    kind: Any
    """The type of one value."""
    is_list: bool
    """Whether there may be several."""
    said: Option | Argument
    default: Any


class Signature(NamedTuple):
    """A function's parameters, as the command line has them and as the function takes them."""

    declared: Sequence[Declared]
    """Options and arguments in order, those of groups too."""
    groups: Mapping[str, type]
    """Groups by the parameter that takes their value."""
    others: Sequence[str]
    """Parameters that no word stands for."""

    def gather(self, values: dict[str, Any]) -> None:
        """Values of fields, replaced by those of their groups."""
        for name, group in self.groups.items():
            values[name] = group(**{field: values.pop(field) for field in _fields(group)})


def signature_of(function: Callable[..., Any]) -> Signature:
    declared: list[Declared] = []
    groups: dict[str, type] = {}
    others: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if hasattr(annotation, "__dataclass_fields__"):
            groups[name] = annotation
            declared += _fields(annotation).values()
        elif hasattr(annotation, "__metadata__"):
            declared.append(_declared(name, annotation, parameter.default))
        else:
            others.append(name)
    return Signature(declared, groups, others)


def _fields(group: type) -> Mapping[str, Declared]:
    from dataclasses import MISSING, fields  # not loaded for commands without groups

    return {
        field.name: _declared(
            field.name, field.type, REQUIRED if field.default is MISSING else field.default
        )
        for field in fields(group)
    }


def _declared(name: str, annotation: Any, default: Any) -> Declared:
    plain, said = get_args(annotation)
    return Declared(name, *_kind(plain), said, default)


def _kind(annotation: Any) -> tuple[Any, bool]:
    """The type of one value, and whether there may be several."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(one for one in get_args(annotation) if one is not type(None))
    is_list = get_origin(annotation) is list
    return (get_args(annotation)[0] if is_list else annotation), is_list
