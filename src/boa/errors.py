"""Every error a user can meet, and the exit code it ends the command with.

BoaError                 1   anything else
├── InputError           2   a field, a value, what would be accepted
│   └── FileError        2   the file itself: missing, too large, not text
├── UsageError           2   options that do not go together
├── BudgetTooSmall       3   names the cheapest possible spend
├── JctTooShort          3   names the shortest possible JCT
├── NoSinglePlan         3   with one sequence per class the caps cost more
├── NoPlanFound          1   a heuristic or a time limit ended without a plan
├── NoServer             4   no service answers where one was looked for
└── Refused              …   what a service answered; the exit code is its own

The live service adds, each beside what raises it: NoSuchJob (2), NotNow, StoreTrouble, NoCapacity,
CloudTrouble (1), and those of `boa.server.http.errors`.
"""

import math
import reprlib
from datetime import date

from boa.units import Seconds, UsdPerHour

_SHOWN = 60


class _Repr(reprlib.Repr):
    """Values as files spell them. Bounded work, however much an alias in YAML may stand for."""

    def repr_bool(self, value: bool, level: int) -> str:
        return "true" if value else "false"

    def repr_NoneType(self, value: None, level: int) -> str:  # noqa: N802
        return "null"

    def repr_date(self, value: date, level: int) -> str:
        return value.isoformat()

    repr_datetime = repr_date


_REPR = _Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 2 * _SHOWN


def shown(value: object) -> str:
    """A value as an error quotes it: on one line, and never long."""
    text = _REPR.repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def no_less(value: float) -> str:
    """A limit in six digits, rounded up: what an error names is then really enough."""
    if not 0 < value < math.inf:
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 5)
    return f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.6g}"


class BoaError(Exception):
    exit_code = 1


class InputError(BoaError):
    """One field of the input is wrong."""

    exit_code = 2

    def __init__(self, field: str, value: object, expected: str, problem: str = "") -> None:
        self.field, self.value, self.expected = field, value, expected
        self.problem = problem or f"got {shown(value)}"
        super().__init__(f"{field}: {self.problem}; expected {expected}")

    def inside(self, file: str) -> "InputError":
        """The same error, naming the file that the field is in."""
        return InputError(f"{file}: {self.field}", self.value, self.expected, self.problem)


class FileError(InputError):
    """A whole file cannot be read."""

    def __init__(self, path: str, problem: str, expected: str) -> None:
        super().__init__(path, None, expected, problem)


class UsageError(BoaError):
    """Options that do not go together."""

    exit_code = 2


class BudgetTooSmall(BoaError):
    exit_code = 3

    def __init__(
        self, budget: UsdPerHour, needed: UsdPerHour, whose: str = "", field: str = ""
    ) -> None:
        """`whose`: the name of the part of a shared budget, or of the period, if it is not the
        whole; `field`: of that part, which bounds what it spends."""
        self.budget, self.needed, self.whose = budget, needed, whose
        said = f"{whose}: a" if whose else "a"
        what, jobs = (f"limit ({field})", "its jobs") if field else ("budget", "this workload")
        super().__init__(
            f"{said} {what} of {budget:.6g} per hour cannot keep up with {jobs}: the "
            f"cheapest plan spends {no_less(needed)} per hour. Raise the {what.split()[0]} to at "
            "least that, or drop a job class."
        )


class JctTooShort(BoaError):
    """No budget, however large, reaches this average JCT."""

    exit_code = 3

    def __init__(self, jct: Seconds, fastest: Seconds) -> None:
        self.jct, self.fastest = jct, fastest
        super().__init__(
            f"no budget reaches an average JCT of {jct:.6g} s: the fastest plan takes "
            f"{no_less(fastest)} s. Ask for at least that, or raise max_gpus."
        )


class NoSinglePlan(BoaError):
    """With one width sequence per class the caps cost more than the budget."""

    exit_code = 3

    def __init__(self, budget: UsdPerHour, enough: UsdPerHour) -> None:
        self.budget, self.enough = budget, enough
        super().__init__(
            f"no plan with one width sequence per class keeps every max_jct_s within a budget of "
            f"{budget:.6g} per hour; {no_less(enough)} per hour is enough for one. Raise the "
            "budget to that, or leave out --deterministic."
        )


class NoPlanFound(BoaError):
    """A solver that proves nothing ended without a plan."""


class NoServer(BoaError):
    """Nothing answered, or something that is no boa server."""

    exit_code = 4

    def __init__(self, url: str, why: str) -> None:
        self.url, self.why = url, why
        super().__init__(
            f"no boa server at {url}: {why}. Start one with 'boa serve --budget USD', or name "
            "another in $BOA_SERVER."
        )


class Refused(BoaError):
    """The server's answer to a request that it did not carry out."""

    def __init__(
        self, message: str, *, status: int, exit_code: int, field: str = "", expected: str = ""
    ) -> None:
        self.status, self.exit_code = status, exit_code
        self.field, self.expected = field, expected
        super().__init__(message)
