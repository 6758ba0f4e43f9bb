"""Before the money: the estimate of a job that is not submitted."""

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from boa.api import estimates as answers
from boa.formats.job import read_job_spec
from boa.server.context import Service, looked_up, only_known_parameters
from boa.server.http.access import caller_of
from boa.server.http.bodies import read_json
from boa.server.http.errors import documented
from boa.server.render import examples
from boa.server.render.estimates import estimate_document


class EstimateRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    def router(self) -> APIRouter:
        router = APIRouter(tags=["jobs"], dependencies=[Depends(only_known_parameters)])
        router.add_api_route(
            "/jobs/estimate",
            self.estimate,
            methods=["POST"],
            openapi_extra=examples.body("JobSpec", examples.JOB_SPEC),
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        return router

    async def estimate(self, request: Request) -> answers.EstimateAnswer:
        """Estimate a job: time, cost, width by epoch, what waits before it.

        Nothing is submitted, and no folder or command is looked for.
        """
        spec, by = read_job_spec(await read_json(request)), caller_of(request)
        control = self._service.control
        found = await run_in_threadpool(looked_up, lambda: control.estimate(spec, by))
        return {"estimate": estimate_document(found), "now": found.now}
