"""Money and what it buys: cost, budget, nodes, the plan, learned classes."""

import asyncio
import math
import re
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.concurrency import run_in_threadpool

from boa.api import answers
from boa.api import money as money_answers
from boa.api.classes import ClassDocument, RetriedClass
from boa.errors import InputError
from boa.formats import checks
from boa.formats.job import MAX_JOB_GPUS
from boa.model.budgets import Budget
from boa.model.groupings import EXPECTED, PLAIN, TAG, What
from boa.scheduler.money.grouping import Grouped
from boa.scheduler.money.purse import AS_CONFIGURED
from boa.server.context import Service, answer, looked_up, only_known_parameters
from boa.server.http.access import caller_of
from boa.server.http.bodies import read_json
from boa.server.http.errors import NoPlanYet, NoSuchClass, documented
from boa.server.http.log_readers import readable_by
from boa.server.http.shared_answers import Shared, nearly
from boa.server.render import documents, examples
from boa.server.render.charges import Charged, charged
from boa.units import Seconds

NO_CAP = math.inf
"""The cap that stands for none."""
Moment = Annotated[
    float | None,
    Query(description="Unix seconds.", examples=[1790000000.0], allow_inf_nan=False),
]


GROUPINGS = rf"^({'|'.join(PLAIN)}|{TAG}[A-Za-z0-9][A-Za-z0-9._+-]{{0,199}})$"


def grouped_by(by: str) -> Grouped:
    """As a parameter has it, checked."""
    if not re.fullmatch(GROUPINGS, by):
        raise InputError("by", by[:60], EXPECTED)
    return Grouped("tag", by.removeprefix(TAG)) if by.startswith(TAG) else Grouped(cast(What, by))


class MoneyRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._windows = Shared[Charged]()

    def router(self) -> APIRouter:
        router = APIRouter(dependencies=[Depends(only_known_parameters)])
        add = router.add_api_route
        add("/cost", self.cost, tags=["money"], responses=documented(401, 403, 422, 503))
        add("/budget", self.budget, tags=["money"], responses=documented(401, 403, 422))
        add(
            "/budget",
            self.set_budget,
            methods=["PUT"],
            tags=["money"],
            openapi_extra=examples.body("BudgetChange", examples.BUDGET_CHANGE),
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        add("/nodes", self.nodes, tags=["cluster"], responses=documented(401, 403, 422))
        add("/plan", self.plan, tags=["planning"], responses=documented(401, 403, 404, 422))
        add("/classes", self.classes, tags=["planning"], responses=documented(401, 403, 422, 503))
        add(
            "/classes/{name}",
            self.job_class,
            tags=["planning"],
            responses=documented(401, 403, 404, 422, 503),
        )
        add(
            "/classes/{name}/retry",
            self.retry_class,
            methods=["POST"],
            tags=["planning"],
            responses=documented(401, 403, 404, 422, 503),
        )
        return router

    async def cost(
        self,
        by: Annotated[
            str | None,
            Query(
                description="List it by day (UTC), class, job, team, user, payer (part of the "
                "budget) or tag:KIND, such as tag:project.",
                examples=["team"],
                json_schema_extra={"pattern": GROUPINGS},
            ),
        ] = None,
        since: Moment = None,
        until: Moment = None,
    ) -> money_answers.Cost:
        """Money spent, being spent, and to be spent by the month's end.

        Totals are over everything, or between `since` and `until` if either is given. Of a time
        that ends now the answer may be some seconds old: `since` and `until` say what it is of.
        """
        snapshot = self._service.control.snapshot
        now = snapshot.now
        begin, end = 0.0 if since is None else since, now if until is None else min(until, now)
        grouping = None if by is None else grouped_by(by)
        if begin > end:
            raise InputError("since", since, f"a time before {end:.0f}")
        asked = since is not None or until is not None
        money = await run_in_threadpool(lambda: snapshot.money)
        listed = grouping is not None
        window = None
        if asked or listed:
            window = await self._charged(begin, end, now, grouping, money.sharing)
        month = window.month if window is not None else None
        if month is None:
            month = await asyncio.wrap_future(self._service.month(now))
        found = documents.cost(money, now, month, window if asked else None)
        found["unused"] = documents.unused(documents.nodes(snapshot))
        if window is not None and listed:
            found["rows"] = [
                cast(money_answers.CostRow, row) for row in window.rows
            ]  # checked later
        return found

    async def _charged(
        self,
        begin: Seconds,
        end: Seconds,
        now: Seconds,
        by: Grouped | None,
        sharing: Budget | None,
    ) -> Charged:
        store = self._service.store
        # Rows add up to the totals of this very moment.
        key = nearly(begin, end, now) if by is None else (begin, end)
        found = self._windows.of(
            (by, key, repr(sharing)), lambda: charged(store, begin, end, now, by, sharing)
        )
        return await asyncio.wrap_future(found)

    def budget(self) -> money_answers.Budget:
        """The budget, how spend compares with it, and whether it is enough for the jobs."""
        snapshot = self._service.control.snapshot
        return documents.judged(snapshot.money, snapshot)

    async def set_budget(self, request: Request) -> money_answers.Budget:
        """Change the budget, the cap or both. What is left out stays as it is; a budget of null is
        the configured one, a cap of null is taken away. With a budget, averages count from now. Too
        little for the jobs that are there is no error: `warnings` says what will happen."""
        both = ("budget_per_hour", "max_spend_per_hour")
        given = checks.mapping(await read_json(request), "", required=(), optional=both)
        if not given:
            expected = "a budget, max_spend_per_hour or both"
            raise InputError("budget_per_hour", None, expected, "missing")
        budget = cap = None
        if "budget_per_hour" in given:
            set_to = given["budget_per_hour"]
            budget = (
                AS_CONFIGURED
                if set_to is None
                else checks.number(set_to, "budget_per_hour", above=0)
            )
        if "max_spend_per_hour" in given:
            wanted = given["max_spend_per_hour"]
            cap = NO_CAP if wanted is None else checks.number(wanted, "max_spend_per_hour", above=0)
        control, by = self._service.control, caller_of(request)
        changed = await answer(control.set_budget(budget, cap, by=by))
        return await run_in_threadpool(documents.judged, changed, control.snapshot)

    def nodes(self) -> answers.NodeList:
        """Nodes that are paid for or about to be, and who holds their GPUs."""
        control = self._service.control
        return {"nodes": documents.nodes(control.snapshot), "now": control.now()}

    def plan(self) -> answers.LivePlan:
        """The plan in force, with its proof and the workload that it was made for."""
        control = self._service.control
        state = control.snapshot.plan
        if state is None:
            raise NoPlanYet
        return documents.plan(state, control.now())

    def classes(self) -> answers.ClassList:
        """Names of the classes that something is known of."""
        return {"classes": looked_up(self._service.control.classes)}

    def job_class(
        self,
        request: Request,
        name: Annotated[str, Path(description="The class.", examples=["resnet18"])],
    ) -> ClassDocument:
        """A class as learned: rates, work, arrivals, with the samples behind them."""
        found = looked_up(lambda: self._service.control.class_document(name))
        if found is None:
            raise NoSuchClass(name)
        readable = readable_by(self._service, caller_of(request))
        for kind in found["gpu_types"]:
            kind["failed"] = [
                one if not one["said"] or readable(one["job"]) else {**one, "said": ""}
                for one in kind["failed"]
            ]
        return found

    async def retry_class(
        self,
        request: Request,
        name: Annotated[str, Path(description="The class.", examples=["resnet18"])],
        gpu_type: Annotated[
            str | None, Query(description="On this GPU type only.", max_length=200)
        ] = None,
        width: Annotated[
            int | None, Query(description="At this width only.", ge=1, le=MAX_JOB_GPUS)
        ] = None,
    ) -> RetriedClass:
        """Forget where jobs of a class failed, so that it is used, or tried, again: what made them
        fail was mended where the service does not see it."""
        control = self._service.control
        if name not in await run_in_threadpool(lambda: looked_up(control.classes)):
            raise NoSuchClass(name)
        found = await answer(control.retry_class(name, gpu_type, width, by=caller_of(request)))
        return {
            "retried": [
                {
                    "gpu_type": one.place.gpu,
                    "width": one.place.width,
                    "across_nodes": one.place.across,
                    "times": one.times,
                    "reason": one.reason,
                }
                for one in found
            ],
            "now": control.now(),
        }
