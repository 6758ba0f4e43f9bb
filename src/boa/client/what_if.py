"""Questions about what might be, by simulation: one method each, as in `api`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from boa.client.wire import Wire
from boa.errors import InputError

if TYPE_CHECKING:
    from boa.api import what_if as answers


class WhatIfQuestions:
    _wire: Wire

    def what_if_traces(self) -> answers.TraceChoices:
        """Traces and policies that a simulation can be asked about."""
        found = self._wire.ask("GET", "what-if/traces")
        return cast("answers.TraceChoices", found)

    def what_if(
        self,
        trace: str | None = None,
        *,
        policies: Collection[str],
        budgets: Collection[float],
        trace_file: tuple[str, str] | None = None,
        gpu_types: Collection[str] | None = None,
        targets: Collection[float] | None = None,
        seed: int = 0,
        billing: str | None = None,
        calendar: Mapping[str, Any] | Literal["own"] | None = None,
    ) -> answers.Simulation:
        """Begin a simulation: of a trace by its name, or of a file's (name, text). `billing`: gpu
        or node; by default as the service's. `calendar`: as in a calendar file, or own: the one
        that the service's budget follows."""
        file = None if trace_file is None else dict(zip(("name", "text"), trace_file, strict=True))
        optional = {
            "trace": trace,
            "trace_file": file,
            "gpu_types": None if gpu_types is None else list(gpu_types),
            "targets": None if targets is None else list(targets),
            "billing": billing,
            "calendar": dict(calendar) if isinstance(calendar, Mapping) else calendar,
        }
        body = {"policies": list(policies), "budgets": list(budgets), "seed": seed}
        body |= {name: value for name, value in optional.items() if value is not None}
        return _simulation(self._wire.ask("POST", "what-if", body=body))

    def simulations(self) -> list[answers.Simulation]:
        """Newest first, without results."""
        found = self._wire.ask("GET", "what-if")
        return cast("answers.SimulationList", found)["simulations"]

    def simulation(self, simulation: str) -> answers.Simulation:
        """With its result, once it is done."""
        return _simulation(self._wire.ask("GET", _simulation_path(simulation)))

    def stop_simulation(self, simulation: str) -> answers.Simulation:
        return _simulation(self._wire.ask("POST", f"{_simulation_path(simulation)}/stop"))


def _simulation(answer: answers.SimulationAnswer) -> answers.Simulation:
    return answer["simulation"]


def _simulation_path(simulation: str) -> str:
    if not simulation.isascii() or not simulation.isdecimal():
        raise InputError("simulation", simulation, "the id of a simulation")
    return f"what-if/{simulation}"
