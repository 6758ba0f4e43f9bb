"""A job's life: its runs begin, end, fail and are tried again (they move in `moving`). All pure."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Literal, TypeAlias

from boa.backoff import doubled
from boa.model.cluster import NodeId
from boa.model.events import FailureCode
from boa.model.exit_codes import AGAIN, KILLED
from boa.model.job import JobRecord, Run, State
from boa.model.placements import FailedPlacement, Placement
from boa.model.records import Report
from boa.model.runs import RunEvent
from boa.replacing import replace
from boa.scheduler.falling_back import elsewhere, sent_back, stopped_well, way_back, went_well
from boa.scheduler.learn.saving import shown
from boa.scheduler.observe.histogram import bucket
from boa.scheduler.state import Draft, FailedRun
from boa.scheduler.stop_cost import Saves, can_checkpoint, lost_by_end_s, unknown, with_stop
from boa.scheduler.terms.stopping import told as stop_fields
from boa.scheduler.words import of_jobs as words
from boa.scheduler.words.of_terms import stopped_by
from boa.units import Seconds, Usd

LONGEST_BACKOFF_S: Seconds = 600.0
FAILED_LATELY_S: Seconds = 3600.0
"""Window in which failures count for the back-off, whatever progress was made in between."""
MOST_FAILURES = 12
"""Failures that are remembered for that."""
MOST_LOST = 5
"""Runs in a row that may be lost within LONGEST_BACKOFF_S of their start, without progress. The
next one counts as a failure of the job: it may have removed the files of its own run."""
MOST_METRICS = 100
"""Metrics of a job that are kept, at most."""
MOST_AGAIN = 8
"""Starts that a job may ask for without getting any further in between; then it has failed."""
AGAIN_S: Seconds = 1.0
"""Pause before the second of them, twice that before the third, and so on."""
NOTICED_S: Seconds = 2.0
"""Seconds until the service notices the end of a run, at most, that count as rescaling: it was away
for the rest."""
OWN_LIMITS = ("max_cost", "max_time")
"""Reasons to stop a job that do not matter once it has said that it is done."""


# What the engine says


def run_began(draft: Draft, event: RunEvent) -> None:
    job = _running(draft, event)
    if job is None or job.run is None or job.run.state != "requested":
        return
    run = replace(job.run, state="running", started_at=draft.now)
    if job.started_at is None:
        waited = draft.now - job.submitted_at
        draft.count(**{"queueing_s": waited, "started": 1, bucket("queueing", waited): 1})
        job = replace(job, started_at=draft.now)
    draft.put_job(replace(job, run=run, state="running", reason="", said=""))


def run_hindered(draft: Draft, event: RunEvent) -> None:
    """Something of it, or of a run before it, cannot be ended: it is not replaced, and the job
    waits. Told when that changes."""
    job = _running(draft, event)
    reason = words.not_over(event.hindrance)
    if job is None or job.reason == reason:
        return
    draft.put_job(replace(job, reason=reason))
    draft.tell("trouble", job=job.id, why="not_over", name=job.name, detail=event.hindrance)


def run_awaits(draft: Draft, event: RunEvent) -> None:
    """It has not begun, and cannot yet: its job says why."""
    job = _running(draft, event)
    if job is not None and job.run is not None and job.run.state == "requested":
        draft.put_job(replace(job, reason=words.awaits(event.awaits)))


def run_saved(draft: Draft, event: RunEvent) -> None:
    """Take in that its checkpoint folder holds something new: also a silent job can be stopped."""
    job = _running(draft, event)
    if job is not None:
        draft.replan = draft.replan or (job.saved_at is None and not job.background)
        draft.put_job(_saved(draft, job, event))


def _saved(draft: Draft, job: JobRecord, event: RunEvent) -> JobRecord:
    return replace(job, saved_at=max(draft.now - event.saved_age_s, job.saved_at or 0.0))


Worked: TypeAlias = Callable[[JobRecord], AbstractSet[Placement]]
"""Placements at which a job or one of its class made progress."""


def run_ended(
    draft: Draft,
    event: RunEvent,
    at: Seconds,
    backoff_s: Seconds,
    worked: Worked,
    saves: Saves = unknown,
) -> None:
    """It ended then, which may be a while ago: the service may have been away.

    Of an end that was told before, or of a run that nobody knows, nothing. `saves`: whether jobs of
    its class are believed to save when they are asked to stop.
    """
    job = _running(draft, event)
    if job is None or job.run is None:
        return
    run = job.run
    at, before_usd = min(max(at, run.requested_at), draft.now), job.cost_usd
    job = replace(
        draft.close_holds(job, run, at), run=None, ran_s=job.ran_s + at - run.requested_at
    )
    if event.saved:
        job = _saved(draft, job, event)
    asked = run.state == "stopping"
    if not asked or event.run_lost:  # what was decided when it was asked to stop still stands
        draft.replan = draft.replan or not job.background
    done = (event.done or run.done) and (
        event.exit_code == 0 or ((asked or event.stopped) and event.exit_code in KILLED)
    )
    if job.stop_requested and not (done and job.stop_why in OWN_LIMITS):
        reason = stopped_by(job.stop_why, job.stop_detail)
        _end(draft, job, "stopped", event, at, reason, **stop_fields(job))
    elif done or (event.exit_code == 0 and not event.stopped):
        job = went_well(job, Placement.of(run.allocation))
        _end(draft, job, "succeeded", event, at)
    elif event.run_lost:
        soon = at - run.requested_at < LONGEST_BACKOFF_S
        job = replace(job, losses=job.losses + 1 if soon else 1)
        if job.losses > MOST_LOST:
            _failed(draft, job, run, event, at, backoff_s, worked(job))
        else:
            wait_s = doubled(backoff_s, job.losses, LONGEST_BACKOFF_S)
            _lost(draft, job, event, wait_s, "run_lost")
    elif event.unready:  # it may be so for long: each time it waits longer
        wait_s = doubled(backoff_s, job.restarts + 1, LONGEST_BACKOFF_S)
        _lost(draft, job, event, wait_s, "not_ready")
    elif asked or event.stopped:  # by us, or by a machine that shuts down
        ran = replace(job, run=run)
        lost = lost_by_end_s(ran, run, run.stopping_at or at, saves(ran), event.exit_code)
        _between_runs(draft, stopped_well(job, run, at), run, event, at, lost, before_usd)
    elif event.node_lost:
        _lost(draft, job, event, backoff_s, "node_lost")
    else:
        _failed(draft, job, run, event, at, backoff_s, worked(job))


def _running(draft: Draft, event: RunEvent) -> JobRecord | None:
    job = draft.jobs.get(event.key.job)
    matches = job is not None and job.run is not None and job.run.attempt == event.key.attempt
    return job if matches else None


def _end(
    draft: Draft,
    job: JobRecord,
    state: Literal["stopped", "succeeded", "failed"],
    event: RunEvent,
    at: Seconds,
    reason: str = "",
    **why: Any,
) -> None:
    """`reason`: what the job says of its end; `why`: what the event says of it beside the rest."""
    job = replace(
        job,
        state=state,
        ended_at=at,
        allocation=None,
        exit_code=event.exit_code,
        reason=reason,
    )
    draft.put_job(job)
    jct = at - job.submitted_at
    draft.count(**{state: 1})
    if state == "succeeded":
        draft.count(**{"jct_s": jct, bucket("jct", jct): 1})
    draft.tell(
        state,
        job=job.id,
        name=job.name,
        jct_s=jct,
        on_gpus_s=job.ran_s,
        cost_usd=job.cost_usd,
        exit_code=event.exit_code,
        **why,
    )


def _between_runs(
    draft: Draft,
    job: JobRecord,
    run: Run,
    event: RunEvent,
    at: Seconds,
    lost_s: Seconds,
    before_usd: Usd,
) -> None:
    """It stopped because it was told to, and goes on elsewhere.

    What it has lost counts as a cost of BOA's decisions, but not where it was held back, or where
    a node of its is gone or taken away.
    """
    if event.exit_code not in (0, None, *KILLED):
        draft.tell("trouble", job=job.id, why="exit_code", name=job.name, exit_code=event.exit_code)
    moved_at = run.stopping_at
    if moved_at is not None:
        moved_at = min(max(moved_at + event.prepared_s, run.trained_at or 0.0), draft.now)
    if any(node not in draft.nodes for node in run.slots):
        moved_at = None
    stopped_s = 0.0 if moved_at is None else max(at - moved_at, 0.0)
    stopped_s += min(draft.now - at, NOTICED_S)
    state: State = "rescaling"
    if job.allocation is None:
        state = "waiting" if job.held_back else "preempted"
    nodes = [draft.nodes.get(node) for node in run.slots]
    by_boa = run.stopping_at is not None and not job.resumes
    if lost_s and by_boa and all(node and node.leaving_at is None for node in nodes):
        part = lost_s / max(at - run.requested_at, lost_s)
        usd = part * (job.cost_usd - before_usd)
        job = with_stop(job, at, lost_s=lost_s, lost_usd=usd)
        job = replace(job, why={**job.why, "lost_s": lost_s})
    draft.put_job(replace(job, state=state, moved_at=moved_at, stopped_s=stopped_s))


def _failed(
    draft: Draft,
    job: JobRecord,
    run: Run,
    event: RunEvent,
    at: Seconds,
    backoff_s: Seconds,
    worked: AbstractSet[Placement],
) -> None:
    """It ended by itself, and badly: if that is for where it was, it goes back at once to where it
    went well; else try again later, unless it has been tried often enough."""
    if event.exit_code == AGAIN and job.asked < MOST_AGAIN:
        _asked_again(draft, job, event, backoff_s)
        return
    code, detail = _failure(event)
    why, failures = words.failure(code, event.exit_code, event.reason), job.failures + 1
    place = Placement.of(run.allocation)
    found = FailedPlacement(place, 1, 1, draft.now, why, job.id, job.code, event.said)
    back = way_back(job, place, worked)
    draft.failed.append(FailedRun(job, found, run.requested_at, counted=back is None))
    job = replace(job, exit_code=event.exit_code, said=event.said)
    if back is not None:
        _go_back(draft, sent_back(job, found, run.requested_at, back), found, back)
        return
    told: dict[str, Any] = {"why": code, "failures": failures, **detail, **_said(event)}
    lately = tuple(then for then in job.failed_at if then > draft.now - FAILED_LATELY_S)
    job = replace(job, failures=failures, failed_at=(*lately, draft.now)[-MOST_FAILURES:])
    if failures > job.spec.retries:
        _end(draft, job, "failed", event, at, words.given_up(why, failures), **told)
        return
    if (other := elsewhere(job, place, worked)) is not None:
        job = sent_back(job, found, run.requested_at, other)
    wait = doubled(backoff_s, len(job.failed_at), LONGEST_BACKOFF_S)
    draft.put_job(
        replace(
            job,
            state="waiting",
            allocation=None,
            retry_at=draft.now + wait,
            moved_at=None,
            reason=words.next_try(why, wait),
        )
    )
    draft.tell(
        "retry",
        job=job.id,
        name=job.name,
        exit_code=event.exit_code,
        wait_s=wait,
        retries=job.spec.retries,
        **told,
    )


def _asked_again(draft: Draft, job: JobRecord, event: RunEvent, backoff_s: Seconds) -> None:
    """It knows what to do better: soon, where it was, but not for ever."""
    wait = min(backoff_s, job.asked * AGAIN_S)
    draft.put_job(
        replace(
            job,
            state="waiting",
            allocation=None,
            asked=job.asked + 1,
            exit_code=event.exit_code,
            said=event.said,
            retry_at=draft.now + wait if wait else None,
            moved_at=None,
            reason=words.asked_again(event.said),
        )
    )
    draft.tell(
        "retry",
        job=job.id,
        name=job.name,
        why="asked",
        exit_code=event.exit_code,
        wait_s=wait,
        **_said(event),
    )


def _go_back(draft: Draft, job: JobRecord, found: FailedPlacement, back: Placement) -> None:
    """It failed for where it was, which is no failure of its own: on where it goes well."""
    failed = found.place
    draft.put_job(
        replace(
            job,
            state="waiting",
            allocation=None,
            retry_at=None,
            moved_at=None,
            reason=words.goes_back(failed, found.reason, back),
        )
    )
    draft.tell(
        "retry",
        job=job.id,
        name=job.name,
        why="width_failed",
        exit_code=job.exit_code,
        wait_s=0.0,
        detail=found.reason,
        **_said(found),
        gpu_type=failed.gpu,
        width=failed.width,
        across_nodes=failed.across,
        back_gpu_type=back.gpu,
        back_width=back.width,
    )


def _said(failed: RunEvent | FailedPlacement) -> dict[str, Any]:
    return {"said": failed.said} if failed.said else {}


def _failure(event: RunEvent) -> tuple[FailureCode, dict[str, str]]:
    """Why a run failed, and the engine's own words where these say more."""
    if event.exit_code is not None:
        code: FailureCode = "exit_code"
    else:
        code = "engine" if event.reason else "processes_lost"
    more = event.reason and event.reason != words.failure("exit_code", event.exit_code, "")
    return code, {"detail": event.reason} if more else {}


def _lost(
    draft: Draft,
    job: JobRecord,
    event: RunEvent,
    backoff_s: Seconds,
    what: Literal["node_lost", "run_lost", "not_ready"],
) -> None:
    """No failure of the job's, but it waits a moment. Of a lost node the engine knows before the
    cloud, which still lists it: the job would be placed there again."""
    lost = replace(job, allocation=None, moved_at=None, exit_code=None, said="")
    why = words.next_try(event.reason, backoff_s)
    draft.put_job(replace(lost, state="waiting", retry_at=draft.now + backoff_s, reason=why))
    draft.tell(
        "retry",
        job=job.id,
        name=job.name,
        why=what,
        exit_code=None,
        wait_s=backoff_s,
        detail=event.reason,
    )


# What the job says


def reported(draft: Draft, job: JobRecord, report: Report) -> JobRecord:
    """Progress; a job that gets further than before is no longer failing."""
    run = job.run
    assert run is not None
    reached = (report.epoch, report.progress)
    best = (job.best_epoch, job.best_progress)
    further = reached > best
    best = max(reached, best)
    after = shown(job, report)
    saved_at = after.saved_at
    if report.saved_s is not None:
        saved_at = max(draft.now - (report.uptime_s - report.saved_s), saved_at or 0.0)
    if run.reported_at is None:
        run = replace(run, reported_at=draft.now)
    if report.done != run.done:
        run = replace(run, done=report.done)
    if saved_at != after.saved_at:
        after = replace(after, saved_at=saved_at)
    if can_checkpoint(after, None) != can_checkpoint(job, None):
        draft.replan = draft.replan or not job.background  # it may be moved from now on
    job = after
    if report.units > 0:
        job = went_well(job, Placement.of(run.allocation))
    return draft.put_job(
        replace(
            job,
            run=run,
            epoch=report.epoch,
            progress=report.progress,
            step=report.step if report.step is not None else job.step,
            loss=report.loss if report.loss is not None else job.loss,
            metrics=_newest(job.metrics, report.metrics),
            best_epoch=best[0],
            best_progress=best[1],
            failures=0 if further else job.failures,
            losses=0 if further else job.losses,
            asked=0 if further else job.asked,
        )
    )


def _newest(before: Mapping[str, float], now: Mapping[str, float]) -> Mapping[str, float]:
    """The newest of each; a figure that a report leaves out stays: a job just rescaled may not know
    yet."""
    if len(before.keys() | now.keys()) > MOST_METRICS:
        return dict(now)
    return {**before, **now}


# What the cloud did


def drop_node(draft: Draft, node: NodeId, at: Seconds) -> None:
    """A node is gone since then, or never came. Jobs that were to have it are placed anew; a run
    that was on it is over, and its job goes on elsewhere without this counting as a failure."""
    for job in draft.jobs_on(node):
        if job.run is not None and node in job.run.slots:
            draft.put_job(draft.close_holds(job, job.run, at, [node]))
    leave_node(draft, node)


def leave_node(draft: Draft, node: NodeId) -> None:
    """Jobs leave it at once, also where nothing else is ready for them: their checkpoints count
    more than the steps they could still make."""
    draft.replan = True
    for job in draft.jobs_on(node):
        if job.allocation is not None and any(node == n for n, _ in job.allocation.nodes):
            job = draft.put_job(replace(job, allocation=None, why={"taken": "node"}))
        run = job.run
        if run is not None and node in run.slots and run.state != "stopping":
            stopping = replace(run, state="stopping", stopping_at=draft.now)
            draft.put_job(replace(job, run=stopping, state="rescaling"))
        elif run is None and job.allocation is None:
            draft.put_job(replace(job, state="waiting"))
