"""Reports of running jobs: hundreds a second, so read by hand and passed on."""

import hmac
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from boa.errors import BoaError
from boa.formats.report import attempt_of, read_report
from boa.runtime.report_tokens import report_token
from boa.server.context import Service
from boa.server.http.bodies import parse, read
from boa.server.http.errors import NotRunning, OtherAttempt, WrongReportToken, error_answer
from boa.server.http.guard import bearer

MAX_REPORT = 64 * 1024
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
    body = parse(await read(request, MAX_REPORT), constants=True)
    attempt = attempt_of(body)
    expected = report_token(service.secret, job, attempt).encode()
    if not hmac.compare_digest(bearer(request.headers) or b"", expected):
        raise WrongReportToken
    record = service.control.snapshot.jobs.get(job)
    if record is None:
        raise NotRunning(job)
    if record.run is None or record.run.attempt != attempt:
        raise OtherAttempt(job, attempt)
    service.control.report(read_report(body, job))
