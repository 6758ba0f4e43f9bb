"""Reports of running jobs: hundreds a second, so checked by hand and passed on."""

import hmac
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from boa.errors import BoaError, InputError
from boa.formats import checks
from boa.model.records import RESCALE_PARTS, Report
from boa.runtime.report_tokens import report_token
from boa.server.context import Service
from boa.server.http.bodies import parse, read
from boa.server.http.errors import NotRunning, OtherAttempt, WrongReportToken, error_answer
from boa.server.http.guard import bearer

MAX_REPORT = 64 * 1024
MAX_METRICS = 100
MAX_NAME = 100
MOST = 10**15
REQUIRED = ("attempt", "uptime_s", "epoch", "progress", "units")
OPTIONAL = ("step", "loss", "metrics", "rescale")
_RECEIVED = {"ok": True}


def report_handler(service: Service) -> Callable[[Request], Awaitable[Response]]:
    """A running job's report of itself. Its token is its own ($BOA_REPORT_TOKEN).

    404 or 409: the job has ended or goes on in another run; nothing more need be reported.
    """

    async def handle(request: Request) -> Response:
        try:
            await _take(service, request)
        except BoaError as problem:
            return error_answer(problem)
        return JSONResponse(_RECEIVED)

    return handle


async def _take(service: Service, request: Request) -> None:
    job: str = request.path_params["job"]
    given = parse(await read(request, MAX_REPORT), constants=True)
    given = checks.mapping(given, "", required=REQUIRED, optional=OPTIONAL)
    attempt = checks.whole(given["attempt"], "attempt", most=MOST)
    expected = report_token(service.secret, job, attempt).encode()
    if not hmac.compare_digest(bearer(request.headers) or b"", expected):
        raise WrongReportToken
    record = service.control.snapshot.jobs.get(job)
    if record is None:
        raise NotRunning(job)
    if record.run is None or record.run.attempt != attempt:
        raise OtherAttempt(job, attempt)
    service.control.report(read_report(given, job, attempt))


def read_report(given: Mapping[str, Any], job: str, attempt: int) -> Report:
    step, loss = given.get("step"), given.get("loss")
    return Report(
        job=job,
        attempt=attempt,
        uptime_s=checks.number(given["uptime_s"], "uptime_s", least=0),
        epoch=checks.whole(given["epoch"], "epoch", least=0, most=MOST),
        progress=checks.number(given["progress"], "progress", least=0),
        units=checks.number(given["units"], "units", least=0),
        step=None if step is None else checks.whole(step, "step", least=0, most=MOST),
        loss=None if loss is None else _measured(loss, "loss"),
        metrics=_metrics(given.get("metrics")),
        rescale=_rescale(given.get("rescale")),
    )


def _rescale(value: Any) -> dict[str, float]:
    """Seconds by part; a figure that cannot be a time is left out, like a loss that diverged."""
    if value is None:
        return {}
    found = {}
    for name, figure in checks.mapping(value, "rescale", optional=RESCALE_PARTS).items():
        seconds = None if figure is None else _measured(figure, f"rescale.{name}")
        if seconds is not None and seconds >= 0:
            found[name] = seconds
    return found


def _metrics(value: Any) -> dict[str, float]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > MAX_METRICS:
        expected = f"a mapping from at most {MAX_METRICS} names to numbers"
        raise InputError("metrics", value, expected)
    found = {}
    for name, figure in value.items():
        if len(name) > MAX_NAME or not name.isprintable():
            raise InputError("metrics", name, f"names of at most {MAX_NAME} printable characters")
        number = _measured(figure, f"metrics.{name}")
        if number is not None:
            found[name] = number
    return found


def _measured(value: Any, path: str) -> float | None:
    """A figure of the training's own. One that diverged (NaN, infinite) is left out: the rest of
    the report still counts."""
    if type(value) not in (int, float):
        raise InputError(path, value, "a number")
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
