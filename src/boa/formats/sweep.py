"""Sweeps: a job and the parameters that differ, in a grid or drawn; and when losers end."""

import itertools
import math
import random
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from boa.errors import InputError
from boa.formats.containers import either, list_of, mapping_of, object_of
from boa.formats.files import read_document
from boa.formats.job import (
    JOB,
    MAX_RUN_BYTES,
    MAX_VALUE_BYTES,
    SHELL,
    below_its_file,
    read_job_spec,
)
from boa.formats.parts import LINE
from boa.formats.shapes import (
    FLAG,
    BeyondSchema,
    Field,
    Format,
    Shape,
    choice,
    needed,
    number,
    text,
    then,
    whole,
)
from boa.model.job_spec import JobSpec
from boa.model.sweep import Better, Halving

MAX_JOBS = 1000
"""Jobs of one sweep."""
MAX_PARAMETERS = 50
MAX_VALUES = 1000
MAX_VALUE = 1000
MAX_SEED = 2**53
MAX_CHARACTERS = 16 * 1024**2
"""Commands and variables of all jobs of a sweep together, with the values in them."""
_PLACE = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]{0,59})\}")


class Range(NamedTuple):
    """Numbers that values are drawn from."""

    low: float
    high: float
    log: bool = False
    """Evenly by their logarithm."""
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSpec:
    """A sweep as it is submitted."""

    job: JobSpec
    parameters: Mapping[str, tuple[str, ...] | Range] = field(default_factory=dict)
    draws: int | None = None
    """None: every combination."""
    seed: int = 0
    halving: Halving | None = None
    name: str = ""


class Drawn(NamedTuple):
    """A job of a sweep, and its parameters."""

    values: dict[str, str]
    spec: JobSpec


def _range(low: float, high: float, log: bool = False, whole: bool = False) -> Range:
    if high <= low:
        raise BeyondSchema(high, f"a number > low, which is {low:g}", at=".high")
    if log and low <= 0:
        raise BeyondSchema(low, "a number > 0, since log is true", at=".low")
    if whole and (low != int(low) or high != int(high)):
        raise BeyondSchema(low, "whole numbers for low and high, since whole is true", at=".low")
    return Range(low, high, log, whole)


_VALUE_TEXT = text(
    f"a number, true, false, or text of up to {MAX_VALUE} characters on one line",
    pattern=r"^[^\x00-\x1f\x7f]*$",
    most=MAX_VALUE,
    fits=str.isprintable,  # it becomes part of the job's name, which all may list
    words="text",
)
_NUMBER = number()
_VALUE: Shape[str] = either(
    {
        str: _VALUE_TEXT,
        int: then(_NUMBER, lambda value: shown(value)),
        float: then(_NUMBER, lambda value: shown(value)),
        bool: then(FLAG, lambda value: "true" if value else "false"),
    },
    expected=f"a number, true, false, or text of up to {MAX_VALUE} characters on one line",
)
_VALUES = either(
    {
        list: list_of(
            _VALUE,
            most=MAX_VALUES,
            unique="each value once",
            expected=f"a list of 1 to {MAX_VALUES} values",
            words="list of values",
        ),
        dict: object_of(
            needed("low", _NUMBER, "The least."),
            needed("high", _NUMBER, "The most."),
            Field("log", FLAG, "Drawn evenly by their logarithm.", default=False),
            Field("whole", FLAG, "Whole numbers only.", default=False),
            make=_range,
            words="`{low: …, high: …, log: true, whole: true}`",
        ),
    },
    expected="a list of values, or {low: …, high: …, log: true, whole: true}",
)
_PARAMETER = text(
    "a name of letters, digits, _ and -, a letter first, of up to 60",
    pattern=r"^[A-Za-z][A-Za-z0-9_-]*$",
    most=60,
)
_HALVING = object_of(
    Field(
        "metric",
        LINE,
        "`loss`, or the name of a metric that jobs report.",
        default=Halving().metric,
    ),
    Field("better", choice(get_args(Better)), "Which of two is better.", default=Halving().better),
    Field("factor", whole(least=2, most=100), "One of so many goes on.", default=Halving().factor),
    Field(
        "first",
        whole(most=10_000),
        "Epochs after which it is looked at first; then `factor` times as many, and so on.",
        default=Halving().first,
    ),
    make=Halving,
)


def _fields(*more: Field) -> tuple[Field, ...]:
    return (
        *more,
        needed(
            "parameters",
            mapping_of(
                _PARAMETER,
                _VALUES,
                called="NAME",
                most=MAX_PARAMETERS,
                expected=f"a mapping of 1 to {MAX_PARAMETERS} parameters",
                words="mapping from names to lists of values, or `{low: …, high: …}`",
            ),
            "What differs. `{NAME}` in `run` and `env` is replaced by its value; one that stands "
            "nowhere is added to the command as `--NAME VALUE`.",
            example={"lr": [1e-4, 3e-4], "dropout": {"low": 0, "high": 0.5}},
        ),
        Field(
            "draws",
            whole(most=MAX_JOBS),
            "So many jobs, each drawn at random.",
            otherwise="every combination",
        ),
        Field("seed", whole(least=0, most=MAX_SEED), "The same seed, the same draws.", default=0),
        Field(
            "halving", _HALVING, "Jobs that do worse than others end early.", otherwise="none do"
        ),
        Field("name", LINE, "For people.", otherwise="the job's"),
    )


def _spec(**values: Any) -> SweepSpec:
    spec = SweepSpec(**values)
    ranges = [name for name, one in spec.parameters.items() if isinstance(one, Range)]
    if ranges and spec.draws is None:
        expected = "how many to draw: a range has no end of values"
        raise BeyondSchema(None, expected, "missing", at=".draws")
    if spec.draws is None:
        count = math.prod(len(values) for values in _lists(spec).values())
        if count > MAX_JOBS:
            expected = f"at most {MAX_JOBS:,} combinations; or draws"
            raise BeyondSchema(None, expected, f"{count:,} combinations", at=".parameters")
    if spec.job.key:
        expected = "no key: its jobs would all have the same"
        raise BeyondSchema(spec.job.key, expected, at=".job.key")
    rule = spec.halving
    if rule is not None and rule.first >= spec.job.epochs:
        expected = f"fewer than the job's epochs, which are {spec.job.epochs}"
        raise BeyondSchema(rule.first, expected, at=".halving.first")
    _check_size(spec)
    return spec


def _check_size(spec: SweepSpec) -> None:
    """Before anything is filled in: a command may name a long value very often."""
    longest = {
        name: 32 if isinstance(one, Range) else max(map(len, one))
        for name, one in spec.parameters.items()
    }
    said = (*spec.job.run, *spec.job.env.values())
    each = sum(map(len, said)) + sum(
        max(sum(text.count("{" + name + "}") for text in said), 1) * length
        for name, length in longest.items()
    )
    count = spec.draws or math.prod(len(values) for values in _lists(spec).values())
    if each * count > MAX_CHARACTERS:
        expected = f"at most {MAX_CHARACTERS:,} in commands and variables of all jobs together"
        raise BeyondSchema(None, expected, f"{each * count:,} characters", at=".job.run")


def _lists(spec: SweepSpec) -> dict[str, tuple[str, ...]]:
    return {name: one for name, one in spec.parameters.items() if not isinstance(one, Range)}


SWEEP = Format(
    "BOA sweep",
    "A job and the parameters that differ: what `POST /api/v1/sweeps` takes.",
    object_of(*_fields(needed("job", JOB.shape, "What all have in common.")), make=_spec),
)


def read_sweep(document: Any) -> SweepSpec:
    return SWEEP.shape.read(document)


def is_sweep(document: Any) -> bool:
    """Whether a job file has a sweep in it."""
    return isinstance(document, dict) and "sweep" in document


def load_sweep(path: str | Path) -> SweepSpec:
    """Read a job file with `sweep:` in it; folders are relative to the folder it is in."""
    document = below_its_file(read_document(path), path)
    rest = {name: value for name, value in document.items() if name != "sweep"}
    said = document["sweep"] if isinstance(document["sweep"], dict) else {"sweep": None}
    read_job_spec(rest)  # errors name its fields as they stand in the file
    return read_sweep({"job": rest, **said})


def drawn(spec: SweepSpec) -> list[Drawn]:
    """The jobs of a sweep, in order: the last parameter of a grid changes first. Raises InputError
    where values make jobs longer than any may be."""
    if spec.draws is None:
        lists = _lists(spec)
        combinations = itertools.product(*lists.values())
        rows = [dict(zip(lists, values, strict=True)) for values in combinations]
    else:
        source = random.Random(spec.seed)
        rows = [
            {name: _drawn(source, one) for name, one in spec.parameters.items()}
            for _ in range(spec.draws)
        ]
    return [Drawn(row, _with(spec.job, row)) for row in rows]


def _drawn(source: random.Random, one: Sequence[str] | Range) -> str:
    """From `random()` alone, which stays the same in every version of Python."""
    at = source.random()
    if not isinstance(one, Range):
        return one[int(at * len(one))]
    low, high, log, is_whole = one
    if is_whole:
        high += 1
    value = low * (high / low) ** at if log else low + (high - low) * at
    return str(int(value)) if is_whole else f"{value:.6g}"


def shown(value: float) -> str:
    """A number as a command line has it."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _with(spec: JobSpec, values: Mapping[str, str]) -> JobSpec:
    """The job with these parameters; those that stand nowhere are added to its command."""
    places = {name: "{" + name + "}" for name in values}
    said = (*spec.run, *spec.env.values())
    missing = [name for name, place in places.items() if not any(place in one for one in said)]
    env = {name: _variable(name, _filled(value, values)) for name, value in spec.env.items()}
    if spec.run[: len(SHELL)] == SHELL:
        quoted = {name: shlex.quote(value) for name, value in values.items()}
        added = "".join(f" --{name} {quoted[name]}" for name in missing)
        run: tuple[str, ...] = (*SHELL, _filled(spec.run[-1], quoted) + added)
    else:
        more = itertools.chain.from_iterable((f"--{name}", values[name]) for name in missing)
        run = (*(_filled(one, values) for one in spec.run), *more)
    named = " ".join(f"{name}={value}" for name, value in values.items())
    name = f"{spec.name or spec.job_class} {named}"
    cut = name if len(name) <= 200 else f"{name[:199]}…"
    return replace(spec, run=_command(run), env=env, name=cut)


def _filled(said: str, values: Mapping[str, str]) -> str:
    """In one pass: a value that looks like a place stays as it is."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), said)


def _variable(name: str, value: str) -> str:
    """Raises InputError where its values have made it longer than any may be …"""
    if (size := len(value.encode())) > MAX_VALUE_BYTES:
        most = f"variables of at most {MAX_VALUE_BYTES // 1024} KB"
        raise InputError("parameters", None, most, f"with them {name} is {size:,} bytes long")
    return value


def _command(run: tuple[str, ...]) -> tuple[str, ...]:
    """… and here."""
    if (size := sum(len(argument.encode()) + 1 for argument in run)) > MAX_RUN_BYTES:
        most = f"a command of at most {MAX_RUN_BYTES // 1024} KB"
        raise InputError("parameters", None, most, f"with them it is {size:,} bytes long")
    return run
