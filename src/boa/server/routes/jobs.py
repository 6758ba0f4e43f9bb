"""Jobs: submit, list, look at, stop, read their logs."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from boa.api import answers
from boa.api import files as file_answers
from boa.formats.job import read_batch, read_job_spec
from boa.model.access import Caller
from boa.model.job import JobRecord
from boa.model.runs import LogFile
from boa.server.context import Service, answer, only_known_parameters
from boa.server.http.access import caller_of, refusal
from boa.server.http.bodies import read_json
from boa.server.http.errors import documented
from boa.server.http.log_files import size_of
from boa.server.http.log_readers import may_read
from boa.server.http.log_stream import (
    LogReader,
    check_exists,
    check_plain,
    log_chunks,
    log_offset,
    masked_chunks,
    select,
)
from boa.server.http.log_times import began_at, last_at, offset_since
from boa.server.http.streams import LiveStream
from boa.server.render import documents, examples
from boa.server.render.job_lists import PAGE, JobQuery, active_jobs, stored_jobs

MAX_BATCH_BYTES = 16 * 1024**2
JobPath = Annotated[str, Path(description="The job's id.", examples=["17"])]


class JobRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    def router(self) -> APIRouter:
        router = APIRouter(tags=["jobs"], dependencies=[Depends(only_known_parameters)])
        add = router.add_api_route
        add(
            "/jobs",
            self.submit,
            methods=["POST"],
            status_code=201,
            openapi_extra=examples.body("JobSpec", examples.JOB_SPEC),
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        add(
            "/jobs/batch",
            self.submit_many,
            methods=["POST"],
            status_code=201,
            openapi_extra=examples.body("JobBatch", {"jobs": [examples.JOB_SPEC]}),
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        add("/jobs", self.jobs, responses=documented(401, 403, 422, 503))
        add("/jobs/{job}", self.job, responses=documented(401, 403, 404, 422, 503))
        add(
            "/jobs/{job}/stop",
            self.stop,
            methods=["POST"],
            responses=documented(401, 403, 404, 422, 503),
        )
        text = {"description": "Text, as the job printed it.", "content": {"text/plain": {}}}
        add(
            "/jobs/{job}/logs",
            self.logs,
            status_code=200,
            response_class=LiveStream,
            responses={200: text, **documented(401, 403, 404, 409, 422, 503)},
        )
        add("/jobs/{job}/logs/runs", self.log_runs, responses=documented(401, 403, 404, 422, 503))
        return router

    async def submit(self, request: Request) -> answers.JobAnswer:
        """Submit a job: a command and its class.

        Answers once the job is stored; it starts when its GPUs are there.
        """
        spec, by = read_job_spec(await read_json(request)), caller_of(request)
        control = self._service.control
        submitted = await run_in_threadpool(  # it looks for what the job names: that may hang
            lambda: control.submit(spec, owner=by.name, team=by.team, by=by)
        )
        return self.details(await answer(submitted), by)

    async def submit_many(self, request: Request) -> answers.Submitted:
        """Submit several jobs at once: in one transaction, all of them or none.

        An error names which is wrong, and what of it: `jobs[3].gpus.min`.
        """
        body = await read_json(request, MAX_BATCH_BYTES)
        specs, by = await run_in_threadpool(read_batch, body), caller_of(request)
        control = self._service.control
        submitted = await run_in_threadpool(  # it looks for what they name
            lambda: control.submit_many(specs, owner=by.name, team=by.team, by=by)
        )
        found = await answer(submitted)
        return {"ids": [record.id for record in found]}

    def jobs(
        self,
        all: Annotated[bool, Query(description="Ended ones too.")] = False,
        job_class: Annotated[
            str | None, Query(alias="class", description="Of this class only.")
        ] = None,
        state: Annotated[
            list[str] | None,
            Query(
                description="In these states only: several times, or with commas in between. "
                "Those of ended jobs imply `all`."
            ),
        ] = None,
        search: Annotated[
            str | None,
            Query(max_length=200, description="Only where this is in name, class or id."),
        ] = None,
        limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
        before: Annotated[int | None, Query(ge=1, description="Of smaller ids only.")] = None,
    ) -> answers.JobList:
        """List jobs, newest first: the active ones, or all.

        An answer may have fewer than `limit` though there are more: `before` tells.
        """
        service = self._service
        asked = JobQuery.of(all, job_class, state, search)
        snapshot = service.control.snapshot
        if asked.ended:
            found, more = stored_jobs(service.store, snapshot, asked, limit, before)
        else:
            found, more = active_jobs(snapshot, asked, limit, before)
        return {
            "jobs": [service.job_row(record, snapshot) for record in found],
            "now": service.control.now(),
            "before": more,
        }

    def job(self, request: Request, job: JobPath) -> answers.JobAnswer:
        """All there is to say of a job, active or ended. Its `env` is for its owner and admins."""
        return self.details(self._service.job(job), caller_of(request))

    async def stop(self, request: Request, job: JobPath) -> answers.JobAnswer:
        """Ask a job to stop: SIGTERM, its grace time, then SIGKILL. Of one that ended, nothing.

        Needs the role member and to be its owner, or the role admin.
        """
        record, by = await run_in_threadpool(self._service.job, job), caller_of(request)
        if not by.owns(record.owner):
            owner = record.owner or "nobody that is known"
            raise refusal(by, f"job {job} is {owner}'s, to be stopped by its owner or an admin")
        return self.details(await answer(self._service.control.stop(job, by=by)), by)

    async def logs(
        self,
        request: Request,
        job: JobPath,
        attempt: Annotated[int | None, Query(ge=1, description="Of this run only.")] = None,
        rank: Annotated[int, Query(ge=0, description="Of this worker.")] = 0,
        tail: Annotated[int | None, Query(ge=0, description="Only so many last lines.")] = None,
        since: Annotated[
            float | None,
            Query(description="Only what was printed since, in Unix seconds.", allow_inf_nan=False),
        ] = None,
        skip: Annotated[
            int | None,
            Query(
                ge=0,
                description="Leave out so many bytes: where another ended. "
                "`tail` counts only where that is past what is kept of the log.",
            ),
        ] = None,
        follow: Annotated[
            bool, Query(description="Go on until the job has ended, or the run that is named.")
        ] = False,
    ) -> StreamingResponse:
        """A worker's output, over all runs of the job unless one is named.

        The header `boa-log-offset` says with which byte the answer begins.
        """
        service = self._service
        record = await run_in_threadpool(self._readable, request, job)
        which = (service.engine, job, attempt, rank)
        await run_in_threadpool(check_exists, *which)
        await run_in_threadpool(lambda: check_plain(select(*which)))
        from_wall = None if since is None else service.wall_of(since)
        skip = await run_in_threadpool(lambda: _first(select(*which), tail, skip, from_wall))
        mask = await run_in_threadpool(service.control.vault.mask, record.spec)
        before = min(skip, max(mask.longest - 1, 0))  # a secret may lie across the first byte
        reader = LogReader(lambda: select(*which), skip - before)
        chunks = log_chunks(
            service, reader, job, follow=follow and not record.ended, attempt=attempt
        )
        if mask.longest:
            chunks = masked_chunks(chunks, mask, before)
        headers = {"boa-log-offset": str(skip)}
        return LiveStream(chunks, "text/plain; charset=utf-8", headers, service.streams)

    def log_runs(self, request: Request, job: JobPath) -> file_answers.LogRuns:
        """Runs of a job that have logs, oldest first, with their workers. For who may read them."""
        service = self._service
        self._readable(request, job)
        found: dict[int, list[LogFile]] = {}
        for file in service.engine.logs(job):
            found.setdefault(file.attempt, []).append(file)
        return {
            "runs": [
                {
                    "attempt": attempt,
                    "ranks": sorted({file.rank for file in files}),
                    "bytes": sum(map(size_of, files)),
                    "began_at": service.time_of(began_at(files)),
                    "last_at": service.time_of(max(last_at(file.path) for file in files)),
                }
                for attempt, files in sorted(found.items())
            ],
            "now": service.control.now(),
        }

    def _readable(self, request: Request, job: str) -> JobRecord:
        """The job, for who may read its log."""
        record, by = self._service.job(job), caller_of(request)
        if not may_read(by, record):
            raise refusal(by, f"the log of job {job} is for its owner, the owner's team, or admins")
        return record

    def details(self, record: JobRecord, to: Caller) -> answers.JobAnswer:
        """All there is to say of a job to somebody."""
        snapshot = self._service.control.snapshot
        holds = documents.holds_of(record, snapshot)
        believed = self._service.believed.of(record, snapshot.plan)
        found = documents.job_details(record, holds, snapshot.now, believed)
        if not to.owns(record.owner):
            found["spec"].pop("env", None)  # where people put keys and passwords
        if not may_read(to, record):
            found["said"] = ""
        return {"job": found}


def _first(
    files: Sequence[LogFile], tail: int | None, skip: int | None, since: float | None
) -> int:
    """The byte that an answer begins with. `since`: in seconds of the wall."""
    first = log_offset(files, tail, skip)
    return first if since is None or skip is not None else max(first, offset_since(files, since))
