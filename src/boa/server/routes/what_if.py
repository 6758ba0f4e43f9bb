"""Simulations of other policies and budgets, beside the live service."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Depends, Path, Request
from starlette.concurrency import run_in_threadpool

from boa.api import what_if as answers
from boa.errors import InputError
from boa.formats import checks
from boa.formats.calendar import check_types, parse_calendar
from boa.model.calendar import Calendar
from boa.model.policies import KNOB_NAMES, scheduled_policies
from boa.model.workload import BILLINGS, Billing
from boa.policy.registry import POLICIES
from boa.server.context import Service, only_known_parameters
from boa.server.http.access import caller_of
from boa.server.http.bodies import read_json
from boa.server.http.errors import documented
from boa.server.http.shared_answers import Shared
from boa.server.render import examples
from boa.server.what_if import own_trace as own
from boa.server.what_if import traces as traces
from boa.server.what_if.runner import SimulationQuestion, Simulations, names_of
from boa.sim.run import World
from boa.sim.sweep import WIDTHS, SweepGrid
from boa.units import GpuName, Seconds

MAX_BODY = 8 * 1024**2
MOST_POINTS = 60
TARGETS = (0.3, 0.5, 0.7)
"""Fewer than `boa compare` takes by itself: somebody waits for the answer."""
LONGEST_NAME = 100
SimulationPath = Annotated[str, Path(description="The simulation's id.", examples=["3"])]
_T = TypeVar("_T")


class WhatIfRoutes:
    def __init__(self, service: Service, simulations: Simulations) -> None:
        self._service, self._simulations = service, simulations
        self._choices = Shared[answers.TraceChoices](most=1)
        """The traces on offer: the service's own is read from thousands of jobs."""

    def router(self) -> APIRouter:
        router = APIRouter(tags=["what if"], dependencies=[Depends(only_known_parameters)])
        add = router.add_api_route
        add("/what-if/traces", self.what_if_traces, responses=documented(401, 403, 422, 503))
        add(
            "/what-if",
            self.what_if,
            methods=["POST"],
            status_code=202,
            openapi_extra=examples.body("WhatIf", examples.WHAT_IF),
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        add("/what-if", self.simulations, responses=documented(401, 403, 422))
        add("/what-if/{simulation}", self.simulation, responses=documented(401, 403, 404, 422))
        add(
            "/what-if/{simulation}/stop",
            self.stop_simulation,
            methods=["POST"],
            responses=documented(401, 403, 404, 422, 503),
        )
        return router

    async def what_if_traces(self) -> answers.TraceChoices:
        """Traces and policies that can be asked about."""
        return await asyncio.wrap_future(self._choices.of("all", self._listed_choices))

    def _listed_choices(self) -> answers.TraceChoices:
        rented, control = self._simulations.gpu_types, self._service.control
        found = [traces.generated_choice(known, rented) for known in traces.GENERATED]
        seen = own.seen_by(self._service, rented)
        if seen.enough:
            budget = control.snapshot.money.usual
            choice = own.own_choice(seen, budget, self._simulations.billing)
            found.append(choice)
        return {
            "traces": found,
            "policies": list(POLICIES),
            "policy_choices": _policy_choices(),
            "billing": self._simulations.billing,
            "calendar": names_of(self._simulations.calendar),
        }

    async def what_if(self, request: Request) -> answers.SimulationAnswer:
        """Simulate policies at budgets on a trace.

        Answers at once; simulations run one after another, beside the service.
        """
        body = await read_json(request, MAX_BODY)
        question = await run_in_threadpool(self._question, body)
        after = {"policies": list(question.policies), "points": question.points}
        await self._service.note(caller_of(request), "what-if", question.trace, after=after)
        return {"simulation": await run_in_threadpool(self._simulations.ask, question)}

    def simulations(self) -> answers.SimulationList:
        """Simulations that were asked for, newest first, without results."""
        return {"simulations": self._simulations.all()}

    def simulation(self, simulation: SimulationPath) -> answers.SimulationAnswer:
        """A simulation, with its result once it is done."""
        return {"simulation": self._simulations.get(simulation)}

    async def stop_simulation(
        self, request: Request, simulation: SimulationPath
    ) -> answers.SimulationAnswer:
        """Stop a simulation at once. Of one that is over, nothing."""
        await run_in_threadpool(self._simulations.get, simulation)
        await self._service.note(caller_of(request), "what-if stop", simulation)
        return {"simulation": await run_in_threadpool(self._simulations.stop, simulation)}

    def _question(self, body: Any) -> SimulationQuestion:
        """Everything that can be wrong is found here, before anything starts."""
        given = checks.mapping(
            body,
            "",
            required=("policies", "budgets"),
            optional=("trace", "trace_file", "gpu_types", "targets", "seed", "billing", "calendar"),
        )
        policies = _listed(given, "policies", _policy)
        grid = SweepGrid(
            budgets=_listed(given, "budgets", lambda v, at: checks.number(v, at, above=0)),
            targets=_listed(given, "targets", _target) if "targets" in given else TARGETS,
        )
        seed = checks.whole(given.get("seed", 0), "seed", least=0, most=2**31 - 1)
        usual = self._simulations.billing
        billing = cast(Billing, checks.choice(given.get("billing", usual), "billing", BILLINGS))
        calendar = self._calendar(given["calendar"], policies) if "calendar" in given else None
        points = _check_points(policies, grid)
        gpus = _listed(given, "gpu_types", checks.text) if "gpu_types" in given else None
        name, world, began = self._world(given, gpus)
        _check_types(policies, world)
        if calendar is not None:
            calendar = calendar.begun_on_a_monday() if began is None else calendar.begun_at(began)
            if given["calendar"] != own.OWN:
                check_types(calendar, world.gpu_types, "calendar:", "this simulation")
        return SimulationQuestion(
            trace=name,
            world=world,
            policies=tuple(policies),
            grid=grid,
            asked=self._simulations.asked(seed, billing, world.gpu_types, calendar),
            points=points,
        )

    def _calendar(self, value: Any, policies: Sequence[str]) -> Calendar:
        """As given, or the service's own, without its end."""
        live = scheduled_policies()
        for name in policies:
            if name not in live:
                expected = f"with a calendar, a policy that the service runs: {', '.join(live)}"
                raise InputError("policies", name, expected)
        if value == own.OWN:
            if self._simulations.calendar is None:
                expected = "a calendar: this service's own budget follows none"
                raise InputError("calendar", value, expected)
            return replace(self._simulations.calendar, until=None)
        return parse_calendar(value, "calendar")

    def _world(
        self, given: Mapping[str, Any], gpus: Sequence[GpuName] | None
    ) -> tuple[str, World, Seconds | None]:
        """The trace's name, what is simulated, and the Unix time of its moment 0; None: some
        Monday."""
        if ("trace" in given) == ("trace_file" in given):
            expected = "the name of a trace (GET /api/v1/what-if/traces), or else a trace_file"
            raise InputError("trace", given.get("trace"), expected)
        rented = self._simulations.gpu_types
        if "trace" in given:
            name = checks.choice(given["trace"], "trace", [*traces.BY_NAME, own.OWN])
            if name == own.OWN:
                seen = own.seen_by(self._service, rented)
                return name, own.own_world(seen, gpus), seen.began
            world = traces.catalogue_world(name, traces.generated_trace(name), gpus, rented)
            return name, world, None
        file = checks.mapping(given["trace_file"], "trace_file", required=("name", "text"))
        name = _file_name(file["name"])
        trace = traces.uploaded_trace(name, checks.text(file["text"], "trace_file.text"))
        return name, traces.catalogue_world(name, trace, gpus, rented), None


def _listed(given: Mapping[str, Any], field: str, each: Callable[[Any, str], _T]) -> list[_T]:
    """A list with at least one entry, each once."""
    values = [
        each(value, f"{field}[{n}]") for n, value in enumerate(checks.sequence(given[field], field))
    ]
    if len(set(values)) != len(values):
        raise InputError(field, given[field], "every entry once")
    return values


def _policy_choices() -> list[answers.PolicyChoice]:
    live = scheduled_policies()
    return [
        {
            "name": name,
            "about": facts.meaning,
            "knob": None if facts.knob is None else KNOB_NAMES[facts.knob],
            "several_gpu_types": facts.several_types,
            "follows_calendar": name in live,
        }
        for name, facts in POLICIES.items()
    ]


def _policy(value: Any, at: str) -> str:
    return checks.choice(checks.text(value, at), at, list(POLICIES))


def _target(value: Any, at: str) -> float:
    return checks.number(value, at, above=0, most=1)


def _file_name(value: Any) -> str:
    name = checks.text(value, "trace_file.name")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError("trace_file.name", name, f"at most {LONGEST_NAME} printable characters")
    return name


def _check_points(policies: Sequence[str], grid: SweepGrid) -> int:
    """As many as there are at most: two budgets may stand for the same cluster."""
    per_knob = {
        "budget": len(grid.budgets),
        "nodes": len(grid.budgets),
        "target": len(grid.targets),
        "width": len(WIDTHS),
        None: 1,
    }
    points = sum(
        len(facts.knob_values) if (facts := POLICIES[name]).knob == "knob" else per_knob[facts.knob]
        for name in policies
    )
    if points > MOST_POINTS:
        expected = f"fewer policies, budgets or targets: at most {MOST_POINTS} points"
        raise InputError("policies", list(policies), expected, f"{points} points")
    return points


def _check_types(policies: Sequence[str], world: World) -> None:
    for name in policies:
        facts = POLICIES[name]
        if len(world.gpu_types) > 1 and (not facts.several_types or facts.knob == "nodes"):
            raise InputError(
                "gpu_types", list(world.gpu_types), f"one GPU type: {name} runs on no more"
            )
