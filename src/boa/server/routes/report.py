"""Reports of running jobs: hundreds a second, so read by hand and passed on."""

import re
import time

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from boa.errors import BoaError
from boa.formats.report import attempt_of, read_report
from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.runtime.report_tokens import LIFE_S, good_until, is_endless, report_token
from boa.server.context import Service
from boa.server.http.access import bearer
from boa.server.http.bodies import parse, read
from boa.server.http.errors import NotRunning, OtherAttempt, WrongReportToken, error_answer
from boa.units import Seconds

MAX_REPORT = 64 * 1024
PATH = re.compile(r"/api/v1/jobs/([^/]+)/report")
_RECEIVED = b'{"ok":true}'
_HEAD = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-length", str(len(_RECEIVED)).encode()),
        (b"content-type", b"application/json"),
    ],
}
_BODY = {"type": "http.response.body", "body": _RECEIVED}


class Reports:
    """A running job's report of itself. Its token is its own ($BOA_REPORT_TOKEN).

    404 or 409: the job has ended or goes on in another run; nothing more need be reported.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        """`app` answers all other requests: most are reports, and what it does for every request
        is more work than a report itself."""
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if found is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            renewed = await _take(self._service, found[1], Request(scope, receive))
        except BoaError as problem:
            await error_answer(problem)(scope, receive, send)
            return
        if renewed is None:
            await send(_HEAD)
            await send(_BODY)
        else:
            await JSONResponse({"ok": True, "token": renewed})(scope, receive, send)


async def _take(service: Service, job: str, request: Request) -> str | None:
    """The run's next token, where it is time for one."""
    body = parse(await read(request, MAX_REPORT), constants=True)
    attempt = attempt_of(body)
    record = service.control.snapshot.jobs.get(job)
    left_s = _left(service, record, job, attempt, bearer(request.headers) or b"")
    if left_s <= 0:
        raise WrongReportToken
    if record is None:
        raise NotRunning(job)
    if record.run is None or record.run.attempt != attempt:
        raise OtherAttempt(job, attempt)
    service.control.report(read_report(body, job))
    return report_token(service.secret, job, attempt) if left_s < LIFE_S / 2 else None


def _left(
    service: Service, record: JobRecord | None, job: JobId, attempt: int, token: bytes
) -> Seconds:
    """How long a token is good yet; not above 0: it is not, or no longer.

    Those without an end are good for runs that began before there were others, until they end.
    """
    until = good_until(service.secret, job, attempt, token)
    if until > 0:
        return until - time.time()
    run = None if record is None else record.run
    old = run is not None and run.requested_at < service.endless_before
    return LIFE_S if old and is_endless(service.secret, job, attempt, token) else 0.0
