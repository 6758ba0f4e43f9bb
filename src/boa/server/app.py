"""The REST API as an ASGI application, over whatever keeps the promises of `Control`."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from boa._version import __version__
from boa.api import answers
from boa.engines.base import Engine
from boa.errors import BoaError, InputError
from boa.runtime.snapshot import Control
from boa.server.context import Service
from boa.server.files import JobFiles
from boa.server.http import dashboard
from boa.server.http.access import Access, TrustedProxy
from boa.server.http.errors import Stuck, documented, error_answer
from boa.server.http.guard import Guard
from boa.server.http.limits import Limits
from boa.server.http.refusals import Refusals
from boa.server.http.streams import Places
from boa.server.notify.couriers import Send
from boa.server.render import metrics, openapi
from boa.server.routes.access import AccessRoutes
from boa.server.routes.estimates import EstimateRoutes
from boa.server.routes.events import EventRoutes
from boa.server.routes.files import FileRoutes
from boa.server.routes.history import HistoryRoutes
from boa.server.routes.job_terms import TermRoutes
from boa.server.routes.jobs import JobRoutes
from boa.server.routes.live import LiveRoutes
from boa.server.routes.money import MoneyRoutes
from boa.server.routes.notify import NotifyRoutes
from boa.server.routes.plans import PlanRoutes
from boa.server.routes.report import Reports
from boa.server.routes.reports import ReportRoutes
from boa.server.routes.secrets import SecretRoutes
from boa.server.routes.sweeps import SweepRoutes
from boa.server.routes.what_if import WhatIfRoutes
from boa.server.what_if.runner import Simulations
from boa.store.base import Store, StoreTrouble
from boa.units import Seconds

API = "/api/v1"
DEFAULT_LIMITS = Limits()
STILL_S = 30.0
"""A control loop that has not stepped for so long, in seconds of the wall, is in trouble."""
MONTH_S = 5.0
"""Seconds of the wall that metrics wait for the month's forecast; then they go without."""
_METRICS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Metrics.", "content": {"text/plain": {}}}
}
_log = logging.getLogger("boa.server")


def create_app(
    control: Control,
    store: Store,
    engine: Engine,
    *,
    token: str | None,
    secret: bytes,
    version: str,
    speed: float = 1.0,
    static: Path = dashboard.STATIC,
    simulations: Simulations | None = None,
    limits: Limits = DEFAULT_LIMITS,
    proxy: TrustedProxy | None = None,
    endless_before: Seconds = 0.0,
    send: Send | None = None,
    files: JobFiles | None = None,
) -> FastAPI:
    """`token`: what every request must carry, this or one that was given out; None: it is for this
    machine only. `proxy`: whose word on who asks is taken.

    `secret`: what report tokens are made with; `endless_before`: runs requested earlier may have
    such without an end. `speed`: of `control`'s clock.
    `static`: where the dashboard was built. `simulations`: of what might be, kept in memory if
    none are given. `files`: what jobs bring and leave; by default none. `limits`: of what clients
    may take. `send`: what notices go out by. `app.state.stopping` ends streams when set.
    """
    openapi.forbid_extras()
    refusals = Refusals(lambda lines: control.note(lines))
    access = Access(token, lambda: control.snapshot.tokens, proxy)
    guard = Middleware(Guard, access=access, head_bytes=limits.head_bytes, refusals=refusals)
    service = Service(
        control=control,
        store=store,
        engine=engine,
        secret=secret,
        endless_before=endless_before,
        version=version,
        speed=speed,
        has_page=dashboard.is_built(static),
        streams=Places(limits.streams),
    )
    app = FastAPI(
        title="BOA Constrictor",
        version=version,
        openapi_url=None,  # and with it no pages that load scripts from elsewhere
        middleware=[guard, Middleware(Reports, service=service)],
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.stopping, app.state.limits = service.stopping, limits
    app.state.refusals = refusals
    _add_api_routes(app, service, simulations or Simulations(), send, files or JobFiles.none())
    _add_service_routes(app, service)
    app.router.routes.extend(dashboard.routes(static, version))
    _add_handlers(app)
    return app


def described() -> dict[str, Any]:
    """The OpenAPI document of a service that need not run: routes know their shapes."""
    nobody: Any = None
    app = create_app(nobody, nobody, nobody, token=None, secret=b"", version=__version__)
    return openapi.document(app)


def _add_api_routes(
    app: FastAPI,
    service: Service,
    simulations: Simulations,
    send: Send | None,
    files: JobFiles,
) -> None:
    # For methods that are not possible; reports are taken before it comes to routes.
    app.router.routes.append(Route(openapi.REPORT_PATH, Reports(app, service), methods=["POST"]))
    for routes in (
        TermRoutes(service),
        FileRoutes(service, files),
        EstimateRoutes(service),
        JobRoutes(service),
        SweepRoutes(service),
        MoneyRoutes(service),
        ReportRoutes(service, simulations),
        EventRoutes(service),
        LiveRoutes(service),
        PlanRoutes(service),
        HistoryRoutes(service),
        SecretRoutes(service),
        WhatIfRoutes(service, simulations),
        AccessRoutes(service),
        NotifyRoutes(service, send),
    ):
        app.include_router(routes.router(), prefix=API)


def _add_service_routes(app: FastAPI, service: Service) -> None:
    document: dict[str, Any] = {}

    async def health() -> answers.Health:  # on no thread, which others may hold
        """Whether the service is up, control loop and all. Needs no token."""
        control = service.control
        stepped_at, now = control.snapshot.now, control.now()
        still_s = (now - stepped_at) / service.speed
        if still_s > STILL_S:
            raise Stuck(still_s)
        return {
            "status": "ok",
            "version": service.version,
            "now": now,
            "stepped_at": stepped_at,
            "page": service.has_page,
        }

    def prometheus() -> Response:
        """Metrics in Prometheus' text format: names that begin with boa_."""
        snapshot = service.control.snapshot
        month = None
        with suppress(StoreTrouble, TimeoutError):  # metrics are for times of trouble, too
            month = service.month(snapshot.now).result(MONTH_S)
        return Response(metrics.exposition(snapshot, month), media_type=metrics.CONTENT_TYPE)

    def described() -> Response:
        if not document:
            document.update(openapi.document(app))
        return JSONResponse(document)

    app.add_api_route(f"{API}/health", health, tags=["service"], responses=documented(403, 503))
    app.add_api_route(f"{API}/health", health, methods=["HEAD"], include_in_schema=False)
    app.add_api_route(
        "/metrics",
        prometheus,
        tags=["service"],
        response_class=Response,
        responses={**_METRICS, **documented(401, 403)},
    )
    app.add_api_route(openapi.PATH, described, include_in_schema=False)


Handler = Callable[[Request, Any], Awaitable[Response]]


def _add_handlers(app: FastAPI) -> None:
    handlers: dict[type[Exception], Handler] = {
        BoaError: _refused,
        RequestValidationError: _invalid,
        HTTPException: _http,
        Exception: _bug,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


async def _refused(request: Request, problem: BoaError) -> Response:
    return error_answer(problem)


async def _invalid(request: Request, problem: RequestValidationError) -> Response:
    """A parameter that FastAPI has checked, worded as ours are."""
    first = problem.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    expected = first["msg"].removeprefix("Input should be ").partition(", unable")[0]
    if expected.startswith(("greater", "less")):
        expected = f"a number {expected}"
    return await _refused(request, InputError(field, first.get("input"), expected))


async def _http(request: Request, problem: HTTPException) -> Response:
    """The router's own refusals: no such path, not this method."""
    path = request.url.path[:60]
    said = {
        404: f"there is no {path} here; {openapi.PATH} lists what there is",
        405: f"{request.method} is not possible on {path}",
    }.get(problem.status_code, str(problem.detail))
    document = {"error": {"message": said, "exit_code": 2}}
    return JSONResponse(document, problem.status_code, headers=problem.headers)


async def _bug(request: Request, problem: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=problem)
    said = f"unexpected {type(problem).__name__}; this is a bug in boa. The server's log has more"
    return JSONResponse({"error": {"message": said, "exit_code": 1}}, 500)
