"""A month's reports: its statement, as JSON, for a spreadsheet, or to print."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from boa.api import reports as answers
from boa.formats import checks
from boa.scheduler.money.months import month_name
from boa.server.context import Service, only_known_parameters
from boa.server.http.access import caller_of
from boa.server.http.bodies import read_json
from boa.server.http.errors import documented
from boa.server.http.shared_answers import Shared
from boa.server.render import examples
from boa.server.render.statement_files import as_csv
from boa.server.render.statement_page import as_page
from boa.server.render.statements import month_from, read_statement
from boa.server.what_if.runner import Simulations
from boa.server.what_if.saved import IN_FORCE, Before, document, jobs_of_month, question_of

Month = Annotated[
    str | None,
    Query(description="YYYY-MM (UTC); the present month by default.", examples=["2026-11"]),
]
_FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The statement: JSON, or the file that `format` names.",
        "content": {"text/csv": {}, "text/html": {}},
    }
}


Width = Annotated[
    int | None,
    Query(description="GPUs of every job before; by default the fewest it can run on.", ge=1),
]
Type = Annotated[str | None, Query(description="GPU type of jobs before.", max_length=200)]


class ReportRoutes:
    def __init__(self, service: Service, simulations: Simulations) -> None:
        self._service, self._simulations = service, simulations
        self._statements = Shared[answers.Statement]()

    def router(self) -> APIRouter:
        router = APIRouter(tags=["money"], dependencies=[Depends(only_known_parameters)])
        router.add_api_route(
            "/statement",
            self.statement,
            response_model=answers.Statement,
            responses={**_FILES, **documented(401, 403, 422, 503)},
        )
        router.add_api_route("/saved", self.saved, responses=documented(401, 403, 422, 503))
        router.add_api_route(
            "/saved",
            self.ask_saved,
            methods=["POST"],
            openapi_extra=examples.body("SavedQuestion", examples.SAVED_QUESTION),
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        return router

    async def saved(
        self, month: Month = None, width: Width = None, gpu_type: Type = None
    ) -> answers.Saved:
        """Savings of a month against fixed widths, as far as they were simulated."""
        before = Before(width=width, gpu=gpu_type)
        return await run_in_threadpool(self._saved, month, before, ask=False)

    async def ask_saved(self, request: Request) -> answers.Saved:
        """Have simulated what BOA saved in a month; what was simulated already is told again, but
        of a month in progress it is made anew. Answers at once: `state` says how far it is."""
        given = checks.mapping(
            await read_json(request), "", required=(), optional=("month", "width", "gpu_type")
        )
        month = checks.text(given["month"], "month") if "month" in given else None
        width = checks.whole(given["width"], "width", least=1) if "width" in given else None
        gpu = checks.text(given["gpu_type"], "gpu_type") if "gpu_type" in given else None
        before = Before(width=width, gpu=gpu)
        await self._service.note(caller_of(request), "what-if", f"saved {month or 'this month'}")
        return await run_in_threadpool(self._saved, month, before, ask=True)

    def _saved(self, month: str | None, before: Before, *, ask: bool) -> answers.Saved:
        snapshot, simulations = self._service.control.snapshot, self._simulations
        first, end = month_from(month, snapshot.now)
        name = before.name(month_name(first))
        own = jobs_of_month(self._service, simulations, first, end, before)
        asked = [one for one in simulations.all() if one["trace"] == name]
        known = simulations.get(asked[0]["id"]) if asked else None
        anew = known is None or known["state"] in ("failed", "stopped")
        if known is not None and known["state"] == "done":
            anew = snapshot.now < end
        if ask and anew and own.enough:
            budget = snapshot.money.usual
            known = simulations.ask(question_of(own, name, simulations, budget))
        budgets = [] if known is None else known["budgets"]
        budget = budgets[IN_FORCE] if budgets else snapshot.money.usual
        found = document(month_name(first), own, known, budget)
        found["gpu_types"] = list(simulations.gpu_types)
        return found

    async def statement(
        self,
        month: Month = None,
        format: Annotated[
            answers.StatementFormat, Query(description="As JSON, or as a file.")
        ] = "json",
    ) -> answers.Statement | Response:
        """A calendar month's bill to the cent, and who spent what on which class.

        Of a month in progress, up to now: the answer may be some seconds old then.
        """
        snapshot = self._service.control.snapshot
        first, end = month_from(month, snapshot.now)
        money = await run_in_threadpool(lambda: snapshot.money)
        targets = self._service.control.notices.targets
        work = self._statements.of(
            (first, repr(money.sharing)),
            lambda: read_statement(self._service.store, money, first, end, snapshot.now, targets),
        )
        found = await asyncio.wrap_future(work)
        if format == "json":
            return found
        text = as_csv(found) if format == "csv" else as_page(found)
        kind = "text/csv" if format == "csv" else "text/html"
        name = f"statement-{month_name(first)}.{format}"
        headers = {
            "Content-Disposition": f'inline; filename="{name}"',
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
        }
        return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)
