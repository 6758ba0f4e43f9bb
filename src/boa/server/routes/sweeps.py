"""Sweeps: submit, list, look at, stop."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.concurrency import run_in_threadpool

from boa.api import sweeps as answers
from boa.formats.sweep import read_sweep
from boa.model.cluster import JobId
from boa.model.job import JobRecord
from boa.model.sweep import Sweep
from boa.scheduler.refusals import NoSuchSweep
from boa.server.context import Service, answer, only_known_parameters
from boa.server.http.access import caller_of, refusal
from boa.server.http.bodies import read_json
from boa.server.http.errors import documented
from boa.server.render import examples
from boa.server.render import sweeps as rendered

SweepPath = Annotated[str, Path(description="The sweep's id.", examples=["s3"])]
_LONGEST = 60


class SweepRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    def router(self) -> APIRouter:
        router = APIRouter(tags=["jobs"], dependencies=[Depends(only_known_parameters)])
        add = router.add_api_route
        add(
            "/sweeps",
            self.submit_sweep,
            methods=["POST"],
            status_code=201,
            openapi_extra=examples.body("Sweep", examples.SWEEP_SPEC),
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        add("/sweeps", self.sweeps, responses=documented(401, 403, 422, 503))
        add("/sweeps/{sweep}", self.sweep, responses=documented(401, 403, 404, 422, 503))
        add(
            "/sweeps/{sweep}/stop",
            self.stop_sweep,
            methods=["POST"],
            responses=documented(401, 403, 404, 422, 503),
        )
        return router

    async def submit_sweep(self, request: Request) -> answers.SweepAnswer:
        """Submit a job with parameters that differ: a grid, or random draws.

        All of its jobs are stored in one transaction, or none.
        """
        body = await read_json(request)
        spec, by = await run_in_threadpool(read_sweep, body), caller_of(request)
        control = self._service.control
        made = await run_in_threadpool(  # a thousand jobs, and it looks for what they name
            lambda: control.submit_sweep(spec, owner=by.name, team=by.team, by=by)
        )
        sweep = await answer(made)
        return await run_in_threadpool(self._details, sweep)

    def sweeps(
        self,
        all: Annotated[bool, Query(description="Those that are over, too.")] = False,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> answers.SweepList:
        """List sweeps, newest first."""
        control = self._service.control
        snapshot, now = control.snapshot, control.now()
        found = [one for one in snapshot.sweeps.values() if all or not one.over]
        found.sort(key=lambda one: -int(one.id[1:]))
        shown = []
        for sweep in found[:limit]:
            best = rendered.best_of_ended(sweep)
            record = None if best is None else self._service.store.job(best)
            ended = {} if record is None else {record.id: record}
            shown.append(rendered.row(sweep, snapshot, snapshot.now, ended))
        return {"sweeps": shown, "now": now}

    def sweep(self, sweep: SweepPath) -> answers.SweepAnswer:
        """All there is to say of a sweep, with every job of it."""
        return self._details(self._found(sweep))

    async def stop_sweep(self, request: Request, sweep: SweepPath) -> answers.SweepAnswer:
        """Ask all jobs of a sweep to stop. Of one that is over, nothing.

        Needs the role member and to be its owner, or the role admin.
        """
        found, by = self._found(sweep), caller_of(request)
        if not by.owns(found.owner):
            owner = found.owner or "nobody that is known"
            raise refusal(by, f"sweep {sweep} is {owner}'s, to be stopped by its owner or an admin")
        await answer(self._service.control.stop_sweep(sweep, by=by))
        return await run_in_threadpool(self._details, self._found(sweep))

    def _found(self, name: str) -> Sweep:
        found = self._service.control.snapshot.sweeps.get(name)
        if found is None:
            raise NoSuchSweep(name[:_LONGEST])
        return found

    def _details(self, sweep: Sweep) -> answers.SweepAnswer:
        control, store = self._service.control, self._service.store
        snapshot = control.snapshot
        sweep = snapshot.sweeps.get(sweep.id, sweep)
        ended: dict[JobId, JobRecord] = {}
        for job in sweep.jobs:
            if job not in snapshot.jobs and (record := store.job(job)) is not None:
                ended[job] = record
        return {"sweep": rendered.details(sweep, ended, snapshot, snapshot.now)}
