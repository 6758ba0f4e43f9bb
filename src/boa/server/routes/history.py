"""The past, over time: the cluster and its cost, and how a job went."""

import asyncio
import math
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from boa.api import history as answers
from boa.errors import InputError
from boa.model.records import Point
from boa.runtime.history import (
    BEFORE_S,
    HeldRun,
    Noted,
    Rented,
    Stretches,
    noted,
    rates,
    rented,
    runs,
)
from boa.scheduler.state import priced_as
from boa.server.context import Service, only_known_parameters
from boa.server.http.errors import documented
from boa.server.http.shared_answers import Shared, nearly
from boa.server.routes.jobs import JobPath
from boa.server.routes.money import Moment
from boa.store.base import Store
from boa.units import DAY_S, Seconds

LEAST_POINTS, POINTS, MOST_POINTS = 2, 120, 500
MOST_S: Seconds = 400 * DAY_S
"""The longest time that is asked for at once: a year, and what belongs to it."""


class HistoryRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._histories = Shared[answers.History]()

    def router(self) -> APIRouter:
        router = APIRouter(dependencies=[Depends(only_known_parameters)])
        add = router.add_api_route
        add("/history", self.history, tags=["money"], responses=documented(401, 403, 422, 503))
        add(
            "/jobs/{job}/history",
            self.job_history,
            tags=["jobs"],
            responses=documented(401, 403, 404, 422, 503),
        )
        return router

    async def history(
        self,
        since: Moment = None,
        until: Moment = None,
        points: Annotated[
            int,
            Query(
                ge=LEAST_POINTS,
                le=MOST_POINTS,
                description="How many stretches to cut the time into.",
            ),
        ] = POINTS,
    ) -> answers.History:
        """The cluster and its cost over time: averages of equal stretches, by the ledger.

        Of the last 24 hours unless `since` or `until` is given. If it ends now it may be some
        seconds old: `since` and `until` say what it is of.
        """
        store, now = self._service.store, self._service.control.snapshot.now
        begin, end = _window(since, until, now)
        found = await asyncio.wrap_future(
            self._histories.of(
                (nearly(begin, end, now), points),
                lambda: _history(store, Stretches(begin, end, points), now),
            )
        )
        return {**found, "now": now}

    def job_history(self, job: JobPath) -> answers.JobHistory:
        """How a job went: the GPUs that it held, and what it said of itself."""
        store, now = self._service.store, self._service.control.snapshot.now
        known = self._service.job(job)
        holds = store.holds_between(-math.inf, math.inf, job=known.id)
        nodes = {node.id: node for node in store.nodes({hold.node for hold in holds})}
        holds = [h if h.until else priced_as(h, nodes.get(h.node)) for h in holds]
        types = {node.id: node.gpu for node in nodes.values()}
        points = store.points(known.id)
        return {
            "runs": [_run(run) for run in runs(holds, types, now)],
            "points": [_point(p, rate) for p, rate in zip(points, rates(points), strict=True)],
            "now": now,
        }


def _window(since: Seconds | None, until: Seconds | None, now: Seconds) -> tuple[Seconds, Seconds]:
    """Until now at most; it has some length."""
    end = now if until is None else min(until, now)
    begin = end - DAY_S if since is None else since
    if not begin + 1e-3 <= end:
        raise InputError("since", since, f"a time before {end:.0f}")
    if end - begin > MOST_S:
        raise InputError("since", since, f"a time after {end - MOST_S:.0f}")
    return begin, end


def _history(store: Store, stretches: Stretches, now: Seconds) -> answers.History:
    begin, end = stretches.since, stretches.until
    paid = rented(stretches, store.nodes_between(begin, end), store.held_between(begin, end))
    said = noted(stretches, store.sampled_between(begin - BEFORE_S, end))
    return {
        "since": begin,
        "until": end,
        "step_s": stretches.step_s,
        "spend_per_hour": paid.spend.tolist(),
        "average_spend_per_hour": paid.average,
        "budget_per_hour": said.budget,
        "gpus": _by_type(paid, said, stretches.number),
        "active_jobs": said.active,
        "waiting_jobs": said.waiting,
        "now": now,
    }


def _by_type(paid: Rented, said: Noted, points: int) -> dict[str, answers.GpuHistory]:
    found: dict[str, answers.GpuHistory] = {}
    nothing = [0.0] * points
    for gpu in sorted(paid.rented.keys() | said.wanted.keys()):
        there = gpu in paid.rented
        found[gpu] = {
            "rented": paid.rented[gpu].tolist() if there else nothing,
            "used": paid.used[gpu].tolist() if there else nothing,
            "wanted": said.wanted.get(gpu, said.none),
        }
    return found


def _run(run: HeldRun) -> answers.JobRun:
    return {
        "since": run.since,
        "until": run.until,
        "gpu_type": run.gpu,
        "width": run.width,
        "nodes": list(run.nodes),
        "cost_usd": run.cost,
    }


def _point(point: Point, rate: float | None) -> answers.JobPoint:
    return {
        "at": point.at,
        "epoch": point.epoch,
        "progress": point.progress,
        "step": point.step,
        "loss": point.loss if point.loss is None or math.isfinite(point.loss) else None,
        "batch_size": point.batch_size,
        "rate": rate,
    }
