"""Plans for more or less money, and why a class has the widths that it has."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Query
from starlette.concurrency import run_in_threadpool

from boa.api import plans as answers
from boa.errors import InputError
from boa.model.streams import class_of
from boa.runtime.snapshot import Snapshot
from boa.scheduler.money.money_state import MoneyState
from boa.scheduler.plan import preview
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.plan.preview import Previewed, Spread
from boa.scheduler.plan.why import why
from boa.server.context import Service, only_known_parameters
from boa.server.http.errors import NoPlanYet, NotPlanned, documented
from boa.server.http.shared_answers import Shared, for_ever
from boa.solver.frontier import sweep
from boa.solver.solution import as_document
from boa.store.base import Store

MOST_POINTS = 200
"""Points of a frontier that are told, at most."""
FRESH_S = 30.0
"""How long a class's spread is taken to stay as it is, in seconds of the wall: whoever drags a
slider asks many times a second."""
READ = 2 * preview.LAST
"""Jobs that are read to find the last that succeeded."""


class PlanRoutes:
    def __init__(self, service: Service, clock: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._frontiers = Shared[answers.Frontier](most=1, keep=for_ever)
        """The frontier for the plan in force."""
        self._spreads = _Spreads(service.store, clock)
        self._kept: tuple[tuple[int, float, float], Previewed] | None = None

    def router(self) -> APIRouter:
        router = APIRouter(dependencies=[Depends(only_known_parameters)])
        add, wrong = router.add_api_route, documented(401, 403, 404, 422)
        add("/frontier", self.frontier, tags=["planning"], responses=wrong)
        add(
            "/preview",
            self.preview,
            tags=["planning"],
            responses={**wrong, **documented(503)},
        )
        add("/classes/{name}/why", self.why, tags=["planning"], responses=wrong)
        return router

    async def frontier(self) -> answers.Frontier:
        """The best average JCT for every budget, for the workload of the plan in force."""
        snapshot = self._service.control.snapshot
        state = self._plan(snapshot)
        found = await asyncio.wrap_future(
            self._frontiers.of(state.number, lambda: _frontier(state))
        )
        gain = (await run_in_threadpool(lambda: snapshot.money)).gain
        return _billed(found, gain, self._service.control.now())

    def preview(
        self,
        budget_per_hour: Annotated[
            float | None,
            Query(description="USD.", gt=0, allow_inf_nan=False, examples=[14.0]),
        ] = None,
        jct_s: Annotated[
            float | None,
            Query(
                description="A wished average JCT, instead of a budget.",
                gt=0,
                allow_inf_nan=False,
                examples=[900.0],
            ),
        ] = None,
    ) -> answers.Preview:
        """The plan for another budget, or for a wished average JCT: one of the two is to be given.
        Nothing is changed."""
        began = time.perf_counter()
        snapshot = self._service.control.snapshot
        state, money = self._plan(snapshot), snapshot.money
        asked = _previewed(state, money, budget_per_hour, jct_s)
        took = time.perf_counter() - began
        spreads = self._spreads.of(preview.arriving(state.workload))
        said = _compared(snapshot, state, asked, self._unchanged(state, money), money.gain, spreads)
        return {**said, "solve_time_s": took, "now": self._service.control.now()}

    def _unchanged(self, state: PlanState, money: MoneyState) -> Previewed:
        """The budget as it is, previewed: what others are compared with. Solved once for the same
        plan and money, not at every move of a slider."""
        usual = money.usual
        key = (state.number, usual, money.planned_with(usual))
        if self._kept is None or self._kept[0] != key:
            self._kept = (key, preview.for_budget(state.workload, usual, key[2]))
        return self._kept[1]

    def why(
        self, name: Annotated[str, Path(description="The class.", examples=["resnet18"])]
    ) -> answers.Why:
        """Why a class has its widths: what every other width would take and cost."""
        snapshot = self._service.control.snapshot
        state, document = self._plan(snapshot), self._service.control.class_document(class_of(name))
        jobs = [job for job in snapshot.jobs.values() if name in (job.job_class, job.stream)]
        running = [job.run.allocation for job in jobs if job.run is not None]
        found = why(state.solution, name, document, running)
        if found is None:
            raise NotPlanned(name)
        said = {**asdict(found), "plan": state.number, "now": self._service.control.now()}
        return cast(answers.Why, said)  # checked on its way out

    def _plan(self, snapshot: Snapshot) -> PlanState:
        if snapshot.plan is None:
            raise NoPlanYet
        return snapshot.plan


def _previewed(
    state: PlanState, money: MoneyState, budget: float | None, jct: float | None
) -> Previewed:
    if budget is not None and jct is None:
        return preview.for_budget(state.workload, budget, money.planned_with(budget))
    if jct is not None and budget is None:
        return preview.for_jct(state.workload, state.solution.rules, jct, money.gain)
    problem = "neither is given" if budget is None else "both are given"
    raise InputError("budget_per_hour, jct_s", None, "exactly one of the two", problem)


def _compared(
    snapshot: Snapshot,
    state: PlanState,
    asked: Previewed,
    usual: Previewed,
    gain: float,
    spreads: Mapping[str, Spread],
) -> answers.Preview:
    found = asked.solution
    document = as_document(found)
    return {
        "plan": state.number,
        "gain": gain,
        "planned_per_hour": asked.planned_with,
        "budget_per_hour": asked.budget,
        "average_jct_s": found.average_jct,
        "p95_jct_s": preview.p95_jct(found, spreads),
        "spend_per_hour": found.spend * gain,
        "too_small_per_hour": None if asked.too_small is None else asked.too_small * gain,
        "left_over_per_hour": asked.left_over * gain,
        "shadow_price_s": found.shadow_price / gain,
        "before": {
            "budget_per_hour": state.solution.spend * gain,
            "average_jct_s": state.solution.average_jct,
        },
        "before_p95_jct_s": preview.p95_jct(state.solution, spreads),
        "unchanged": {
            "budget_per_hour": usual.solution.spend * gain,
            "average_jct_s": usual.solution.average_jct,
        },
        "unchanged_p95_jct_s": preview.p95_jct(usual.solution, spreads),
        "classes": _changes(state, asked, usual, document["classes"], snapshot),
        "cluster": document["cluster"],
        "solve_time_s": 0.0,
        "now": snapshot.now,
    }


def _changes(
    state: PlanState,
    asked: Previewed,
    usual: Previewed,
    after: list[answers.PlanClass],
    snapshot: Snapshot,
) -> list[answers.ClassChange]:
    active = Counter(job.stream for job in snapshot.jobs.values())
    before = {found["name"]: found for found in as_document(state.solution)["classes"]}
    old, new = state.solution.plan.by_class(), asked.solution.plan.by_class()
    same, unchanged = usual.solution.plan.by_class(), as_document(usual.solution)["classes"]
    return [
        {
            "name": c.name,
            "arrivals_per_hour": c.arrivals_per_hour,
            "active_jobs": active[c.name],
            "before": before.get(c.name),
            "after": document,
            "changed": c.name not in old or preview.differs(old[c.name], new[c.name]),
            "unchanged": usually,
            "differs": preview.differs(same[c.name], new[c.name]),
        }
        for c, document, usually in zip(state.workload.classes, after, unchanged, strict=True)
    ]


def _billed(found: answers.Frontier, gain: float, now: float) -> answers.Frontier:
    return {
        **found,
        "gain": gain,
        "points": [
            {**point, "budget_per_hour": point["budget_per_hour"] * gain}
            for point in found["points"]
        ],
        "cheapest_per_hour": found["cheapest_per_hour"] * gain,
        "fastest_per_hour": found["fastest_per_hour"] * gain,
        "now": now,
    }


def _frontier(state: PlanState) -> answers.Frontier:
    """The frontier in the plan's own dollars."""
    found = sweep(state.workload, state.solution.rules)
    return {
        "plan": state.number,
        "gain": 1.0,
        "points": [
            {"budget_per_hour": point.budget, "average_jct_s": point.average_jct}
            for point in preview.thinned(found, MOST_POINTS)
        ],
        "cheapest_per_hour": found.cheapest,
        "fastest_per_hour": found.fastest_budget,
        "fastest_jct_s": found.fastest_jct,
        "now": state.at,
    }


class _Spreads:
    """How far the JCTs of every class's last jobs lay apart, read now and then."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Spread]] = {}

    def of(self, names: list[str]) -> dict[str, Spread]:
        """Up to the first class of which too few jobs have ended: the others' would not help."""
        found: dict[str, Spread] = {}
        with self._lock:
            for name in names:
                found[name] = self._one(name)
                if len(found[name]) < preview.ENOUGH:
                    break
        return found

    def _one(self, name: str) -> Spread:
        now = self._clock()
        known = self._known.get(name)
        if known is None or now - known[0] > FRESH_S:
            jobs = self._store.jobs(ended=True, job_class=name, limit=READ)
            known = self._known[name] = (now, preview.spread_of(jobs))
        return known[1]
