"""A job's terms: priced before it is submitted, changed while it is there; and submitted again."""

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool

from boa.api import answers
from boa.api.terms import JobTerms, LimitTerms
from boa.errors import InputError
from boa.formats.job import read_job_spec
from boa.formats.job_changes import read_again
from boa.model.access import Caller
from boa.model.job import JobRecord, JobSpec
from boa.policy.boa import Planned, planned_of
from boa.scheduler.plan.job_price import in_words, priced
from boa.scheduler.plan.plan_in_force import PlanState
from boa.server.context import Service, answer, looked_up, only_known_parameters
from boa.server.http.access import caller_of, refusal
from boa.server.http.bodies import read_json
from boa.server.http.errors import documented
from boa.server.render import examples
from boa.server.render.estimates import priority_document
from boa.server.routes.jobs import JobPath, JobRoutes

Force: TypeAlias = Annotated[bool, Query(description="Go ahead although work is lost.")]
WRONG = (400, 401, 403, 404, 413, 422, 503)


class TermRoutes:
    def __init__(self, service: Service) -> None:
        self._service, self._jobs = service, JobRoutes(service)
        self._planned: tuple[PlanState | None, Planned | None] = (None, None)

    def router(self) -> APIRouter:
        router = APIRouter(tags=["jobs"], dependencies=[Depends(only_known_parameters)])
        add = router.add_api_route
        add(
            "/jobs/terms",
            self.terms,
            methods=["POST"],
            openapi_extra=examples.body("JobSpec", examples.JOB_SPEC),
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        for path, do in (("pause", self.pause), ("resume", self.resume)):
            responses = documented(401, 403, 404, *((409,) if do == self.pause else ()), 422, 503)
            add(f"/jobs/{{job}}/{path}", do, methods=["POST"], responses=responses)
        changes = examples.body("JobChanges", {"weight": 3, "gpus": {"max": 4}, "max_cost": 60})
        add(
            "/jobs/{job}",
            self.change,
            methods=["PATCH"],
            openapi_extra=changes,
            responses=documented(*WRONG, 409),
        )
        again = examples.body("Resubmission", {"changes": {"max_cost": 80}, "continue": True})
        add(
            "/jobs/{job}/resubmit",
            self.resubmit,
            methods=["POST"],
            status_code=201,
            openapi_extra=again,
            responses=documented(*WRONG),
        )
        return router

    async def terms(self, request: Request) -> JobTerms:
        """Time and cost of a job, and what its limits and its deadline do. Submits nothing.

        By the plan in force, and as long as `POST /api/v1/jobs/estimate` says; what it waits for
        GPUs is not in it.
        """
        spec = read_job_spec(await read_json(request))
        return await run_in_threadpool(self._priced, spec, caller_of(request))

    def _priced(self, spec: JobSpec, by: Caller) -> JobTerms:
        plan = self._service.control.snapshot.plan
        if plan is not self._planned[0]:
            made = None if plan is None else planned_of(plan.solution, 0, plan.at)
            self._planned = (plan, made)
        estimate = looked_up(lambda: self._service.control.estimate(spec, by))
        time_s, usd = estimate.time_s, estimate.cost_usd
        known = None if time_s is None or usd is None else (time_s, usd)
        # A plan has figures for every class, those that nobody knows included: they are a guess.
        told = None if estimate.basis is None else self._planned[1]
        found = priced(told, spec, estimate.stream, 0.0, known)
        usual, way = found.usual, found.foreseen
        said: JobTerms = {
            "known": usual is not None,
            "usual": None,
            "deadline": None,
            "max_cost": None,
            "max_time": None,
            "priorities": [priority_document(one) for one in estimate.priorities],
            "words": in_words(found, spec, estimate.priorities),
        }
        if usual is None or way is None:
            return said
        said["usual"] = {"jct_s": usual.seconds, "cost_usd": usual.usd}
        if found.way is not None:
            said["deadline"] = {
                "jct_s": way.seconds,
                "cost_usd": way.usd,
                "kept": found.kept,
                "extra_usd": max(way.usd - usual.usd, 0.0),
                "urgency": way.urgency,
            }
        said["max_cost"] = _limit(spec.max_cost, way.usd)
        said["max_time"] = _limit(spec.max_time_s, way.seconds)
        return said

    async def pause(
        self, request: Request, job: JobPath, force: Force = False
    ) -> answers.JobAnswer:
        """Pause a job: it saves a checkpoint, releases its GPUs and waits until it is resumed.

        A pause that would lose work is refused (409), with how much that is, unless `force` is
        true. Needs the role member and to be its owner, or the role admin; as does all that
        follows.
        """
        _, by = await self._own(request, job, "paused")
        paused = self._service.control.pause(job, force=force, by=by)
        return self._jobs.details(await answer(paused), by)

    async def resume(self, request: Request, job: JobPath) -> answers.JobAnswer:
        """Go on with a job that was paused, as soon as there are GPUs for it."""
        _, by = await self._own(request, job, "resumed")
        return self._jobs.details(await answer(self._service.control.resume(job, by=by)), by)

    async def change(
        self, request: Request, job: JobPath, force: Force = False
    ) -> answers.JobAnswer:
        """Change fields of a job that has not ended: `name`, `gpus`, `retries`,
        `priority`, `weight`, `max_time_s`, `max_cost`, `deadline_s` (from now),
        `may_wait_s`. Null takes a limit away.

        A job that would lose work if it were stopped is made a background job only if `force` is
        true: the answer is 409 else, with how much work that is.
        """
        changes = await read_json(request)
        _, by = await self._own(request, job, "changed")
        changed = self._service.control.change(job, changes, force=force, by=by)
        return self._jobs.details(await answer(changed), by)

    async def resubmit(self, request: Request, job: JobPath) -> answers.JobAnswer:
        """Submit a job once more, with some fields changed.

        `continue`: from the checkpoints of the first, which must have ended.
        """
        body = await read_json(request)
        if not isinstance(body, dict) or body.keys() - {"changes", "continue"}:
            expected = "a mapping of changes (fields of a job file) and continue (true or false)"
            raise InputError("the body", body, expected)
        continued = body.get("continue", False)
        if not isinstance(continued, bool):
            raise InputError("continue", continued, "true or false")
        record, by = await self._own(request, job, "submitted again")
        spec = read_again(record.spec, body.get("changes", {}))
        control = self._service.control
        made = await run_in_threadpool(  # it looks for what the job names
            lambda: control.resubmit(
                job, spec, continued=continued, owner=by.name, team=by.team, by=by
            )
        )
        return self._jobs.details(await answer(made), by)

    async def _own(self, request: Request, job: str, what: str) -> tuple[JobRecord, Caller]:
        record, by = await run_in_threadpool(self._service.job, job), caller_of(request)
        if not by.owns(record.owner):
            owner = record.owner or "nobody that is known"
            raise refusal(by, f"job {job} is {owner}'s, to be {what} by its owner or an admin")
        return record, by


def _limit(most: float | None, needs: float) -> LimitTerms | None:
    return None if most is None else {"most": most, "needs": needs, "enough": needs <= most}
