"""Sweeps as options: parameters, draws, and when losers end."""

from dataclasses import dataclass
from typing import Annotated, Any

from boa.cli import options, shell
from boa.errors import InputError, UsageError

EXPECTED = "NAME=A,B,C or NAME=1..5; with --draws also NAME=0..0.5 or NAME=log:1e-5..1e-2"
HALVING = "METRIC[:min|max[:FACTOR[:FIRST]]], such as loss or accuracy:max:3:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """A sweep, for a command or beside a job file."""

    sweep: Annotated[
        list[str] | None,
        shell.Option(
            "--sweep",
            metavar="NAME=VALUES",
            help="A job for every value (a,b,c or 1..5), of all such options together.",
        ),
    ] = None
    draws: Annotated[
        int | None,
        options.count("--draws", "N", 1, "So many jobs, their values drawn at random."),
    ] = None
    draw_seed: Annotated[
        int | None, options.count("--draw-seed", "N", 0, "The same seed, the same draws (0).")
    ] = None
    halving: Annotated[
        str | None,
        shell.Option(
            "--halving",
            metavar="METRIC[:min|max[:FACTOR]]",
            help="End jobs early that do worse: one of FACTOR (3) goes on.",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """As a job file's `sweep` has it; empty: there is none."""
        if not self.sweep:
            if self.draws is not None or self.draw_seed is not None or self.halving is not None:
                raise UsageError("--draws, --draw-seed and --halving go with --sweep NAME=VALUES.")
            return {}
        parameters: dict[str, Any] = {}
        for said in self.sweep:
            name, equals, values = said.partition("=")
            if not equals or not values or name in parameters:
                raise InputError("--sweep", said, f"{EXPECTED}, each name once")
            parameters[name] = _values(said, values, drawn=self.draws is not None)
        fields = {
            "draws": self.draws,
            "seed": self.draw_seed,
            "halving": None if self.halving is None else _halving(self.halving),
        }
        return {
            "parameters": parameters,
            **{name: value for name, value in fields.items() if value is not None},
        }


def _values(said: str, values: str, *, drawn: bool) -> Any:
    log = values.startswith("log:")
    low, dots, high = values.removeprefix("log:").partition("..")
    if not dots:
        if log:
            raise InputError("--sweep", said, EXPECTED)
        return [part.strip() for part in values.split(",")]
    try:
        first, last = float(low), float(high)
    except ValueError:
        raise InputError("--sweep", said, EXPECTED) from None
    whole = low.lstrip("-").isdecimal() and high.lstrip("-").isdecimal()
    if whole and not log and not drawn:
        if not 0 <= last - first < 1000:
            raise InputError("--sweep", said, "a rising range of at most 1,000 numbers")
        return list(range(int(first), int(last) + 1))
    return {"low": first, "high": last, "log": log, "whole": whole}


def _halving(said: str) -> dict[str, Any]:
    metric, *rest = said.split(":")
    if not metric or len(rest) > 3:
        raise InputError("--halving", said, HALVING)
    names = ("better", "factor", "first")
    try:
        found = [int(one) if n else one for n, one in enumerate(rest)]
    except ValueError:
        raise InputError("--halving", said, HALVING) from None
    return {"metric": metric, **dict(zip(names, found, strict=False))}
