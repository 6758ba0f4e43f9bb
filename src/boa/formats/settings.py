"""Defaults of `boa.yaml`, as `ServiceConfig` has them, and fields that take theirs from there."""

import dataclasses
from typing import Any

from boa.formats.shapes import Field, Shape
from boa.model.service import ServiceConfig

DEFAULTS: dict[str, Any] = {part.name: part.default for part in dataclasses.fields(ServiceConfig)}


def setting(name: str, shape: Shape[Any], meaning: str) -> Field:
    """A field that is called the same in `ServiceConfig`."""
    return Field(name, shape, meaning, default=DEFAULTS[name])
