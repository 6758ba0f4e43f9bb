"""Money and what it buys: cost, budget, nodes, the plan, learned classes."""

import math
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Query, Request

from boa.client import answers
from boa.control.costs import cost_rows, costs_by_class, month_of
from boa.control.ledger import bill
from boa.errors import InputError
from boa.model import checks
from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.server import examples, views
from boa.server.bodies import read_json
from boa.server.context import Service, answer, looked_up, only_known_parameters
from boa.server.errors import NoPlanYet, NoSuchClass, documented

MAX_NAMED = 10_000
"""Jobs whose names a list by job can give; those before have their ids only."""
NO_CAP = math.inf
"""What the control loop is told to take the cap away."""
Moment = Annotated[
    float | None,
    Query(description="Unix seconds.", examples=[1790000000.0], allow_inf_nan=False),
]


class MoneyRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

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
        return router

    def cost(
        self,
        by: Annotated[
            answers.Grouping | None, Query(description="List it by day (UTC), class or job.")
        ] = None,
        since: Moment = None,
        until: Moment = None,
    ) -> answers.Cost:
        """What was spent, is being spent, and will have been by the month's end.

        Totals are over everything, or between `since` and `until` if either is given.
        """
        snapshot, store = self._service.control.snapshot, self._service.store
        money, now = snapshot.money, snapshot.now  # one moment for totals and rows
        begin, end = 0.0 if since is None else since, now if until is None else min(until, now)
        if begin > end:
            raise InputError("since", since, f"a time before {end:.0f}")
        asked = since is not None or until is not None
        forecast = views.forecast(store.nodes_between(month_of(now)[0], now), money, now)
        if by is None and not asked:
            return views.cost(money, now, forecast, None)
        nodes = store.nodes_between(begin, end)
        if by is None or by == "class":
            charged, rows = costs_by_class(nodes, store.held_between(begin, end), begin, end)
        else:
            holds = store.holds_between(begin, end)
            charged = bill(nodes, holds, begin, end)
            rows = cost_rows(nodes, holds, self._named(by), by, begin, end)
        found = views.cost(money, now, forecast, None)
        if asked:
            # There is nothing to average over before anything was rented.
            known = max(begin, min(views.first_charged(nodes, now), money.since, end))
            average = views.per_hour(charged.total, end - known)
            found = views.cost(money, now, forecast, (begin, end, charged, average))
        if by is not None:
            found["rows"] = [cast(answers.CostRow, row) for row in rows]  # checked on its way out
        return found

    def _named(self, by: answers.Grouping) -> dict[JobId, JobRecord]:
        """Jobs whose names the rows give."""
        named = self._service.store.jobs(limit=MAX_NAMED) if by == "job" else ()
        return {record.id: record for record in named}

    def budget(self) -> answers.Budget:
        """The budget, and how spend compares with it."""
        control = self._service.control
        return views.budget(control.snapshot.money, control.now())

    async def set_budget(self, request: Request) -> answers.Budget:
        """Change the budget; averages count from now. A cap that is left out stays as it is; null
        takes it away."""
        given = checks.mapping(
            await read_json(request),
            "",
            required=("budget_per_hour",),
            optional=("max_spend_per_hour",),
        )
        budget = checks.number(given["budget_per_hour"], "budget_per_hour", above=0)
        cap = None
        if "max_spend_per_hour" in given:
            wanted = given["max_spend_per_hour"]
            cap = NO_CAP if wanted is None else checks.number(wanted, "max_spend_per_hour", above=0)
        control = self._service.control
        return views.budget(await answer(control.set_budget(budget, cap)), control.now())

    def nodes(self) -> answers.NodeList:
        """Nodes that are paid for or about to be, and who holds their GPUs."""
        control = self._service.control
        return {"nodes": views.nodes(control.snapshot), "now": control.now()}

    def plan(self) -> answers.LivePlan:
        """The plan in force, with its proof and the workload that it was made for."""
        control = self._service.control
        state = control.snapshot.plan
        if state is None:
            raise NoPlanYet
        return views.plan(state, control.now())

    def classes(self) -> answers.ClassList:
        """Names of the classes that something is known of."""
        return {"classes": looked_up(self._service.control.classes)}

    def job_class(
        self, name: Annotated[str, Path(description="The class.", examples=["resnet18"])]
    ) -> dict[str, object]:
        """What was learned of a class: rates, work, arrivals, with the samples behind them."""
        found = looked_up(lambda: self._service.control.class_document(name))
        if found is None:
            raise NoSuchClass(name)
        return dict(found)
