"""From records to the documents that the API answers with. Pure; all money is the ledger's."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from boa.amounts import duration
from boa.api import answers
from boa.api import money as money_answers
from boa.api.money import BudgetCalendar, BudgetPart, BudgetStretch, LimitSet
from boa.formats.job import job_document
from boa.formats.workload import dump_workload
from boa.model.job import JobRecord
from boa.model.records import Hold, NodeRecord
from boa.runtime.snapshot import Snapshot
from boa.scheduler.learn.estimates import Estimate
from boa.scheduler.money.costs import cost_of_job
from boa.scheduler.money.forecast import BAND_WORDS, Forecast
from boa.scheduler.money.ledger import Bill
from boa.scheduler.money.money_state import MoneyState, PartState, StretchState
from boa.scheduler.money.shortfall import shortfall
from boa.scheduler.plan.plan_in_force import PlanState
from boa.scheduler.words import of_limits
from boa.scheduler.words.of_keeping import kept
from boa.scheduler.words.pieces import Part
from boa.scheduler.words.sentences import parts
from boa.server.render.charges import Charged
from boa.server.render.watching import Standing, nodes_of
from boa.solver.solution import as_document
from boa.store.base import StoredEvent
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour


def holds_of(record: JobRecord, snapshot: Snapshot) -> list[Hold]:
    """Open ones of a job: those that its run began with and has not lost. Looked up, since there
    are thousands of others."""
    run = snapshot.jobs.get(record.id, record).run
    if run is None:
        return []
    keys = ((record.id, node, run.requested_at) for node in run.slots)
    return [hold for key in keys if (hold := snapshot.holds.get(key)) is not None]


def job(record: JobRecord, holds: Iterable[Hold], now: Seconds) -> answers.Job:
    """`holds`: the open ones of this job."""
    held = record.allocation if record.run is None else record.run.allocation
    on_gpus, age = record.on_gpus_s(now), record.since_submission_s(now)
    return {
        "id": record.id,
        "name": record.name,
        "class": record.job_class,
        "state": record.state,
        "gpu_type": None if held is None else held.gpu,
        "width": 0 if held is None else held.width,
        "epoch": record.epoch,
        "submitted_at": record.submitted_at,
        "started_at": record.started_at,
        "ended_at": record.ended_at,
        "rescalings": record.rescalings,
        "restarts": record.restarts,
        "exit_code": record.exit_code,
        "cost_usd": cost_of_job(record, holds, now),
        "on_gpus_s": on_gpus,
        "waiting_s": max(age - on_gpus, 0.0),
        "since_submission_s": age,
        "holds_gpus": record.run is not None,
        "owner": record.owner,
        "team": record.team,
        "payer": record.payer or None,
        "priority": record.spec.priority,
    }


def job_row(
    record: JobRecord, holds: Iterable[Hold], now: Seconds, believed: Estimate
) -> answers.JobRow:
    return {
        **job(record, holds, now),
        "epochs": believed.epochs,
        "done": believed.done,
        "left_s": believed.left_s,
        "left_usd": believed.left_usd,
        "stop_requested": record.stop_requested,
        "reason": record.reason,
        "paused": record.paused,
        "sweep": record.sweep,
    }


def job_details(
    record: JobRecord, holds: Sequence[Hold], now: Seconds, believed: Estimate
) -> answers.JobDetails:
    share = record.share
    return {
        **job_row(record, holds, now, believed),
        "progress": record.progress,
        "step": record.step,
        "loss": record.loss,
        "metrics": dict(record.metrics),
        "attempt": None if record.run is None else record.run.attempt,
        "rescale_s": {} if record.run is None else dict(record.run.rescale),
        "attempts": record.attempts,
        "failures": record.failures,
        "said": record.said,
        "retry_at": record.retry_at,
        "wanted": None if share is None else {"gpu_type": share.gpu, "width": share.width},
        "held": [part(hold) for hold in holds],
        "awaits": [one.job for one in record.awaits],
        "waits_until": record.waits_until,
        "deadline": record.deadline,
        "urgency": record.urgency,
        "ran_s": record.on_gpus_s(now),
        "parameters": dict(record.drawn),
        "spec": job_document(record.spec),
    }


def part(hold: Hold) -> answers.Part:
    return {"job": hold.job, "node": hold.node, "gpus": hold.gpus}


def nodes(snapshot: Snapshot) -> list[answers.Node]:
    return [node(*seen) for _, seen in sorted(nodes_of(snapshot).items())]


def node(record: NodeRecord, holds: Sequence[Hold], standing: Standing) -> answers.Node:
    weighed, worth, draining = standing
    return {
        "id": record.id,
        "gpu_type": record.gpu,
        "gpus": record.gpus,
        "used_gpus": sum(hold.gpus for hold in holds),
        "state": record.state,
        "price": record.price,
        "price_per_hour": record.price * record.gpus,
        "requested_at": record.requested_at,
        "billed_from": record.billed_from,
        "ready_at": record.ready_at,
        "released_at": record.released_at,
        "empty_since": record.empty_since,
        "address": record.address,
        "reason": record.reason,
        "worth_per_hour": worth,
        "draining": draining,
        "why": kept(record, worth, weighed=weighed, draining=draining),
        "held": [part(hold) for hold in holds],
    }


def unused(found: Sequence[answers.Node]) -> list[money_answers.Unused]:
    """Money that is being paid for GPUs which no job holds, by why."""
    groups: dict[money_answers.UnusedCode, list[answers.Node]] = {}
    for one in found:
        code: money_answers.UnusedCode = "idle"
        if one["state"] in ("requested", "releasing"):
            code = "booting" if one["state"] == "requested" else "leaving"
        elif one["draining"]:
            code = "draining"
        free = one["gpus"] - (one["used_gpus"] if one["state"] == "ready" else 0)
        if one["billed_from"] is not None and free > 0 and one["state"] != "gone":
            groups.setdefault(code, []).append(one)
    return [_unused(code, of) for code, of in groups.items()]


def _unused(code: money_answers.UnusedCode, of: Sequence[answers.Node]) -> money_answers.Unused:
    held = 0 if code in ("booting", "leaving") else 1
    free = [one["gpus"] - held * one["used_gpus"] for one in of]
    worths = [one["worth_per_hour"] for one in of]
    known = [worth for worth in worths if worth is not None]
    return {
        "why": code,
        "nodes": len(of),
        "gpus": sum(free),
        "per_hour": sum(one["price"] * gpus for one, gpus in zip(of, free, strict=True)),
        "nodes_per_hour": sum(one["price_per_hour"] for one in of),
        "nodes_worth_per_hour": sum(known) if len(known) == len(worths) else None,
    }


def budget(money: MoneyState) -> money_answers.Budget:
    found: money_answers.Budget = {
        "budget_per_hour": money.budget,
        "max_spend_per_hour": money.max_spend,
        "effective_budget_per_hour": money.effective,
        "billing": money.billing,
        "average_spend_per_hour": money.average,
        "spend_now_per_hour": money.now_per_hour,
        "since": money.since,
        "now": money.at,
    }
    if money.stretch is not None:
        found["stretch"] = _stretch(money.stretch)
    if money.parts:
        found["parts"] = [_sharer(part) for part in money.parts]
    return cast(money_answers.Budget, found | _limits_set(money) | _calendar(money))


def _calendar(money: MoneyState) -> dict[str, BudgetCalendar]:
    """The period that holds, and the next one, where the budget changes by the hour."""
    calendar = money.calendar
    if calendar is None:
        return {}
    return {
        "calendar": {
            "period": calendar.period,
            "next_at": calendar.next_at,
            "next_period": calendar.next_period,
            "next_budget_per_hour": calendar.next_budget,
            "week_budget_per_hour": calendar.week,
            "month_left_usd": calendar.month_left,
            "ends_at": calendar.ends_at,
            "time_zone": calendar.time_zone,
            "allowed_per_hour": money.budget if money.allowed is None else money.allowed,
            "average_per_hour": dict(calendar.averages),
            "words": of_limits.calendar_words(money),
            "week": [
                {
                    "period": one.period,
                    "budget_per_hour": one.budget,
                    "begins_minute": one.begins,
                    "ends_minute": one.ends,
                }
                for one in calendar.hours
            ],
        }
    }


def _sharer(part: PartState) -> BudgetPart:
    budget = part.budget
    found: BudgetPart = {
        "name": budget.name,
        "above": part.above,
        "budget_per_hour": part.per_hour,
        "right_now_per_hour": part.right_now,
        "max_per_hour": budget.max_per_hour,
        "lent_usd": part.lent,
        "spend_now_per_hour": part.now_per_hour,
        "lends": budget.lends,
        "classes": list(budget.classes),
        "users": list(budget.users),
        "teams": list(budget.teams),
        "max_spend_per_hour": budget.max_spend,
        "borrows": budget.borrows,
    }
    if part.stretch is not None:
        found["stretch"] = _stretch(part.stretch)
    return found


def _stretch(stretch: StretchState) -> BudgetStretch:
    return {
        "name": stretch.name,
        "each": stretch.each,
        "usd": stretch.usd,
        "allowed_usd": stretch.allowed,
        "rolled_usd": stretch.rolled,
        "spent_usd": stretch.spent,
        "left_usd": stretch.left,
        "since": stretch.since,
        "ends": stretch.ends,
        "rolls_over": stretch.rolls_over,
        "used_up": stretch.used_up,
    }


def judged(money: MoneyState, snapshot: Snapshot) -> money_answers.Budget:
    """The budget, and whether it is enough for the jobs of a snapshot."""
    found = shortfall(money, snapshot.plan, snapshot.jobs.values(), snapshot.gpu_types)
    more = {"needed_per_hour": found.needed, "warnings": list(found.warnings)}
    return cast(money_answers.Budget, {**budget(money), **more})


def _limits_set(money: MoneyState) -> dict[str, LimitSet]:
    """Where budget and cap come from, if not from the configuration."""
    found: dict[str, LimitSet] = {}
    for key, changed, said in (
        ("budget_set", money.budget_set, of_limits.budget_words(money)),
        ("max_spend_set", money.max_spend_set, of_limits.cap_words(money)),
    ):
        if changed is not None:
            found[key] = {
                "configured_per_hour": changed.configured,
                "at": changed.at,
                "words": said,
            }
    return found


def cost(
    money: MoneyState,
    now: Seconds,
    month: Forecast,
    window: Charged | None,
) -> money_answers.Cost:
    """`window`: what was charged in the time that was asked for;
    None: everything there ever was."""
    if window is None:
        since, until, known = money.since, now, money.since
        per_hour = money.average
        allowed: UsdPerHour | None = money.allowed
        charged = Bill(
            total=money.total, jobs=money.jobs, idle=money.idle, provisioning=money.provisioning
        )
    else:
        since, until, known = window.since, window.until, known_since(window, money)
        per_hour = average(window, money)
        charged, allowed = window.bill, window.allowed
    found: money_answers.Cost = {
        "budget_per_hour": money.budget,
        "max_spend_per_hour": money.max_spend,
        "effective_budget_per_hour": money.effective,
        "billing": money.billing,
        "allowed_per_hour": money.budget if allowed is None else allowed,
        "average_spend_per_hour": per_hour,
        "average_since": known,
        "spend_now_per_hour": money.now_per_hour,
        "since": since,
        "until": until,
        "now": now,
        "total_usd": charged.total,
        "jobs_usd": charged.jobs,
        "idle_usd": charged.idle,
        "provisioning_usd": charged.provisioning,
        "forecast_month_usd": month.amount,
        "forecast_basis": month.basis,
        "forecast_over_s": month.over_s,
        "forecast_pace_per_hour": month.pace,
        "forecast_allowed_per_hour": money.budget if month.allowed is None else month.allowed,
        "forecast_low_usd": None if month.band is None else month.band[0],
        "forecast_high_usd": None if month.band is None else month.band[1],
    }
    if month.band is not None:
        found["forecast_band_basis"] = BAND_WORDS.format(over=duration(month.over_s))
    return cast(money_answers.Cost, found | _limits_set(money) | _calendar(money))


def per_hour(amount: Usd, seconds: Seconds) -> UsdPerHour:
    return amount / seconds * SECONDS_PER_HOUR if seconds > 0 else 0.0


def average(found: Charged, money: MoneyState) -> UsdPerHour:
    return per_hour(found.bill.total, found.until - known_since(found, money))


def known_since(found: Charged, money: MoneyState) -> Seconds:
    """Beginning of the average: there is none of the time before anything was rented."""
    return max(found.since, min(found.first, money.since, found.until))


def plan(state: PlanState, now: Seconds) -> answers.LivePlan:
    return {
        "number": state.number,
        "at": state.at,
        "plan": as_document(state.solution),
        "workload": dump_workload(state.workload),
        "wall_s": state.wall_s,
        "too_small_per_hour": state.too_small,
        "now": now,
    }


def event(stored: StoredEvent) -> answers.Event:
    said = stored.event
    data: dict[str, Any] = dict(said.data)
    return {
        "number": stored.number,
        "at": said.at,
        "kind": said.kind,
        "text": said.text,
        "parts": [_part(piece) for piece in parts(said)],
        "job": said.job,
        "node": said.node,
        "data": data,
    }


def _part(piece: Part) -> answers.EventPart:
    found: answers.EventPart = {"text": piece.text}
    if piece.job is not None:
        found["job"] = piece.job
    if piece.node is not None:
        found["node"] = piece.node
    if piece.seconds is not None:
        found["seconds"] = piece.seconds
    return found
