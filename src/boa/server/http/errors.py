"""Errors as the API tells them: one shape, one status each.

Of the service itself:

BoaError
├── Unauthorized      401   no token, or a wrong one
│   └── Expired       401   one that is over
├── WrongReportToken  401   not the one of the run that reports
├── Forbidden         403   a browser was made to ask by somebody else's page
│   └── NotAllowed    403   the caller's role, or the job's owner, does not allow it
├── NoSuchPath        404   one that nothing can be at
├── NoSuchClass       404   (an InputError)
├── NotPlanned        404   (an InputError) a class that the plan in force has no jobs of
├── NoPlanYet         404
├── NotRunning        404   a report of a job that is not active
├── OtherAttempt      409   a report of a run that is over
├── LogReplaced       409   something else stands where a log was
├── TooLate           408   a request that was begun and never came
├── TooLarge          413   a body over the limit
├── TooManyConnections 429  from one address
├── HeadTooLarge      431   headers over the limit
├── NotHttp           400   not even a request
├── Malformed         400   not JSON
├── Crowded           503   too many connections
├── TooManyStreams    503   too many answers that go on
├── TooSlow           503   the control loop did not come to a change in time
├── NoAnswer          503   nor to a question
└── Stuck             503   it has not stepped for long
"""

from typing import Any

from starlette.responses import JSONResponse

from boa.api.answers import ErrorAnswer, Problem
from boa.errors import BoaError, InputError, UsageError
from boa.scheduler.refusals import NoSuchJob, NotNow
from boa.store.base import StoreTrouble

_STATUS: tuple[tuple[type[BoaError], int], ...] = (
    (NoSuchJob, 404),
    (NotNow, 503),
    (StoreTrouble, 503),
    (InputError, 422),
    (UsageError, 422),
)
ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
DESCRIPTIONS = {
    400: "The body is not JSON.",
    401: "No token, or a wrong one.",
    403: "Not within the role of who asks; or sent by another site's page.",
    404: "There is no such thing.",
    405: "Not a method of this path.",
    409: "The run that reports is over; or something else stands where a log was.",
    413: "The body is too large.",
    422: "A field or parameter is wrong: the error names it, and what would be accepted.",
    500: "A bug in boa.",
    503: "Not now: the database or the control loop is in trouble. Nothing has changed.",
}


class Unauthorized(BoaError):
    exit_code = 2
    status = 401

    def __init__(self, given: bool) -> None:
        problem = "the token is not this server's" if given else "this server wants a token"
        super().__init__(
            f"{problem}: set BOA_TOKEN to one that it knows (the user who runs it needs none: boa "
            "token show)"
        )


class Expired(Unauthorized):
    def __init__(self, name: str) -> None:
        BoaError.__init__(
            self,
            f"the token {name} has expired, or was revoked: ask an admin for a new one (boa token "
            "add), and set BOA_TOKEN to it",
        )


class WrongReportToken(BoaError):
    exit_code = 2
    status = 401

    def __init__(self) -> None:
        super().__init__(
            "the report token is not this run's: send 'Authorization: Bearer $BOA_REPORT_TOKEN'"
        )


class Forbidden(BoaError):
    exit_code = 2
    status = 403


class NotAllowed(Forbidden):
    """Somebody who is known may not do this."""

    def __init__(self, name: str, role: str, why: str) -> None:
        super().__init__(f"{name or 'whoever asks'} has the role {role}: {why}")


class NoSuchPath(BoaError):
    exit_code = 2
    status = 404

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no {path[:60]!r} here; /api/openapi.json lists what there is")


class NoSuchClass(InputError):
    status = 404

    def __init__(self, name: str) -> None:
        super().__init__("class", name, "a class that jobs were submitted of (GET /api/v1/classes)")


class NotPlanned(InputError):
    status = 404

    def __init__(self, name: str) -> None:
        super().__init__("class", name, "one that the plan in force expects (GET /api/v1/plan)")


class NoPlanYet(BoaError):
    status = 404

    def __init__(self) -> None:
        super().__init__("there is no plan yet: one is made when jobs have been submitted")


class NotRunning(BoaError):
    exit_code = 2
    status = 404

    def __init__(self, job: str) -> None:
        super().__init__(f"job {job} is not active: it has ended, or never was")


class OtherAttempt(BoaError):
    exit_code = 2
    status = 409

    def __init__(self, job: str, attempt: int) -> None:
        super().__init__(f"attempt {attempt} of job {job} is not the one that runs")


class LogReplaced(BoaError):
    exit_code = 2
    status = 409

    def __init__(self, attempt: int, rank: int, name: str, what: str) -> None:
        super().__init__(
            f"the log of attempt {attempt}, rank {rank} {what}: the job has replaced {name}, "
            "which is not read. Name another attempt or rank"
        )


class TooLarge(BoaError):
    exit_code = 2
    status = 413

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body is too large; expected at most {limit:,} bytes")


class HeadTooLarge(BoaError):
    exit_code = 2
    status = 431

    def __init__(self, limit: int) -> None:
        super().__init__(f"the headers are too large; expected at most {limit:,} bytes")


class TooLate(BoaError):
    status = 408

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the request did not come within {seconds:g} s. Nothing was done")


class TooManyConnections(BoaError):
    status = 429

    def __init__(self, most: int) -> None:
        super().__init__(
            f"too many connections from this address, all of them in use; expected at most {most:,}"
        )


class Crowded(BoaError):
    status = 503

    def __init__(self, most: int) -> None:
        super().__init__(f"all {most:,} connections of the service are in use; try again")


class TooManyStreams(BoaError):
    status = 503

    def __init__(self, most: int) -> None:
        super().__init__(
            f"all {most:,} streams of the service (events, pages, logs) are in use; try again, or "
            "ask without a stream"
        )


class NotHttp(BoaError):
    exit_code = 2
    status = 400

    def __init__(self) -> None:
        super().__init__("what came is no HTTP request")


class Malformed(BoaError):
    exit_code = 2
    status = 400

    def __init__(self, problem: str) -> None:
        super().__init__(f"the body is {problem}; expected one JSON object")


class TooSlow(BoaError):
    status = 503

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the service did not come to it within {seconds:g} s; it may still do so. Look "
            "before you ask again"
        )


class NoAnswer(BoaError):
    status = 503

    def __init__(self) -> None:
        super().__init__("the control loop did not answer in time. Nothing was changed, try again")


class Stuck(BoaError):
    status = 503

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the control loop has not stepped for {seconds:.0f} s: jobs go on, but nothing is "
            "decided. If it stays so, restart boa serve; its log may say why"
        )


def status_of(problem: BoaError) -> int:
    own = getattr(problem, "status", None)
    if isinstance(own, int):
        return own
    return next((status for kind, status in _STATUS if isinstance(problem, kind)), 500)


def error_document(problem: BoaError) -> ErrorAnswer:
    said: Problem = {"message": str(problem), "exit_code": problem.exit_code}
    if isinstance(problem, InputError):
        said |= {"field": problem.field, "expected": problem.expected}
    return {"error": said}


def error_answer(problem: BoaError) -> JSONResponse:
    answer = JSONResponse(error_document(problem), status_of(problem))
    if isinstance(problem, Unauthorized):
        answer.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(problem, TooManyStreams):
        answer.headers["Retry-After"] = "1"
    if isinstance(problem, TooLarge):
        answer.headers["Connection"] = "close"  # or the rest of the body would be read after all
    return answer


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For OpenAPI: the errors that a route may answer with. Their shape is named and not given:
    FastAPI would compile it anew for every status of every route."""
    return {s: {"content": ERROR, "description": DESCRIPTIONS[s]} for s in sorted(statuses)}
