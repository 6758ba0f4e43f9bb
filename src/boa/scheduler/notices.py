"""Notices that follow from what happens: which event is told to whom. Pure.

Ends and preemptions of jobs are told one by one. A state that lasts is told when it begins: the
budget that is too small, the cap that jobs wait for, not again within six hours; the month's
forecast once a month, and each percentage of its budget that is spent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boa.model.job import JobRecord
from boa.model.notices import MonthSpent, Notice, NoticeKind, NotifyTarget
from boa.model.records import Event
from boa.scheduler.money.costs import month_of
from boa.scheduler.money.ledger import committed
from boa.scheduler.state import Draft
from boa.scheduler.words import of_notices as words
from boa.scheduler.words.sentences import without_log
from boa.units import SECONDS_PER_HOUR, Seconds, Usd, UsdPerHour

QUIET_S: Seconds = 6 * 3600.0
"""Until a state that has come and gone is told of again."""
SLACK = 1.05
"""By so much a month may cost more than the budget allows before that is told."""
META = "notify"
"""Where the store has what was told of states that last."""


class Notices:
    """`known`: what was told before, as stored; `last`: the highest number of a notice so far.
    `node_usd`: USD per hour of the cheapest node."""

    def __init__(
        self,
        targets: Sequence[NotifyTarget],
        known: Mapping[str, Any] | None,
        last: int = 0,
        node_usd: UsdPerHour = 0.0,
    ) -> None:
        self.targets, self.last, self._node_usd = tuple(targets), last, node_usd
        self._number = last
        self._known: dict[str, Any] = dict(known or {})
        self._next = self._known
        """The same with what the draft at hand tells: it may yet not be stored."""
        self.on_new: Callable[[], None] = lambda: None
        """Called when notices are stored that somebody has to deliver."""

    def write(self, draft: Draft, budget: UsdPerHour, cap: UsdPerHour | None) -> None:
        """Notices that this step's events give rise to, into the same transaction."""
        self._begin(draft)
        if not self.targets:
            return
        for event in draft.changes.events:
            self._event(draft, event, budget)
        if cap is not None:
            self._capped(draft, cap)
        self._keep(draft)

    def foretell(self, draft: Draft, forecast: Usd, budget: UsdPerHour) -> None:
        """The month costs this much at its end, if it goes on so."""
        self._begin(draft)
        first, end = month_of(draft.now)
        usual = budget * (end - first) / SECONDS_PER_HOUR * SLACK
        told: dict[str, float] = dict(self._next.get("forecast", {}))
        for target in self.targets:
            most = usual if target.month_usd is None else target.month_usd
            if target.wants("forecast") and forecast > most and told.get(target.name) != first:
                told[target.name] = first
                data = {"forecast_usd": forecast, "most_usd": most, "month": first}
                self._add(draft, target, "forecast", words.month_costs(forecast, most), data)
        self._next["forecast"] = told
        self._keep(draft)

    def spent(self, draft: Draft, spent: Sequence[MonthSpent]) -> None:
        """So much of the month's budget is gone, of the whole and of parts: the highest percentage
        that was reached is told, each once a month."""
        self._begin(draft)
        told: dict[str, Any] = dict(self._next.get("spent", {}))
        for target in self.targets:
            if target.wants("spent"):
                told[target.name] = self._told_spent(draft, target, spent, told.get(target.name))
        self._next["spent"] = told
        self._keep(draft)

    def _told_spent(
        self,
        draft: Draft,
        target: NotifyTarget,
        spent: Sequence[MonthSpent],
        told: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        """`told`: the highest percentage by part, of which month."""
        month = max((one.month for one in spent), default=None)
        known = dict(told["told"]) if told is not None and told["month"] == month else {}
        for one in spent:
            own = target.month_usd if not one.part else None
            allowed = one.allowed if own is None else own
            percent = reached(one.spent, allowed, target.alerts)
            if percent > known.get(one.part, 0.0) and target.hears_of_part(one.part):
                known[one.part] = percent
                data = {"part": one.part, "percent": percent, "month": one.month}
                data |= {"spent_usd": one.spent, "budget_usd": allowed}
                self._add(draft, target, "spent", words.month_spent(one, percent, allowed), data)
        return {"month": month, "told": known}

    def adopt(self, draft: Draft) -> None:
        """The draft is stored: so it is."""
        if draft.changes.notices:
            new = max(draft.changes.notices) > self.last
            self.last = max(self.last, *draft.changes.notices)
            if new:
                self.on_new()
        if META in draft.changes.meta:
            self._known = dict(draft.changes.meta[META])

    def _begin(self, draft: Draft) -> None:
        self._next = dict(draft.changes.meta.get(META, self._known))
        self._number = max(self.last, *draft.changes.notices, 0)

    def _keep(self, draft: Draft) -> None:
        if self._next != self._known or META in draft.changes.meta:
            draft.put_meta(META, self._next)

    def _event(self, draft: Draft, event: Event, budget: UsdPerHour) -> None:
        if event.kind in ("succeeded", "stopped", "failed"):
            self._of_job(draft, event, "failed" if event.kind == "failed" else "ended")
        elif event.kind == "preempted":
            self._of_job(draft, event, "preempted")
        elif event.kind == "planned":
            self._planned(draft, event, budget)

    def _of_job(self, draft: Draft, event: Event, kind: NoticeKind) -> None:
        job = draft.changes.jobs.get(event.job or "")
        owner, team = ("", "") if job is None else (job.owner, job.team)
        said = without_log(event)
        data = {**said.data, "state": event.kind, **_about(job)}
        for target in self.targets:
            if target.wants(kind) and target.is_about(owner, team):
                self._add(draft, target, kind, said.text, data, event)

    def _capped(self, draft: Draft, cap: UsdPerHour) -> None:
        """Jobs wait, and no other node may be rented beside those that are there. While one boots
        it is not known who is left without."""
        if draft.now - self._next.get("cap_at", -QUIET_S) < QUIET_S:
            return
        if any(node.state == "requested" for node in draft.nodes.values()):
            return
        spend = committed(draft.nodes.values(), draft.now)
        if spend + self._node_usd <= cap:
            return
        waiting = sum(_waits(job) for job in draft.jobs.values())
        if waiting:
            self._next["cap_at"] = draft.now
            data = {"max_spend_per_hour": cap, "spend_per_hour": spend, "waiting": waiting}
            self._all(draft, "cap", words.cap_reached(cap, spend, waiting), data)

    def _planned(self, draft: Draft, event: Event, budget: UsdPerHour) -> None:
        needed = event.data.get("too_small_per_hour")
        told = needed is not None and self._next.get("too_small", False)
        quiet = draft.now - self._next.get("budget_at", -QUIET_S) >= QUIET_S
        self._next["too_small"] = told or (needed is not None and quiet)
        if needed is not None and quiet and not told:
            self._next["budget_at"] = draft.now
            data = {"budget_per_hour": budget, "needed_per_hour": needed}
            self._all(draft, "budget", words.budget_too_small(budget, needed), data)

    def _all(self, draft: Draft, kind: NoticeKind, text: str, data: dict[str, Any]) -> None:
        for target in self.targets:
            if target.wants(kind):
                self._add(draft, target, kind, text, data)

    def _add(
        self,
        draft: Draft,
        target: NotifyTarget,
        kind: NoticeKind,
        text: str,
        data: Mapping[str, Any],
        event: Event | None = None,
    ) -> None:
        self._number = number = self._number + 1
        draft.changes.notices[number] = Notice(
            number=number,
            target=target.name,
            kind=kind,
            at=draft.now,
            text=text,
            job=None if event is None else event.job,
            data=data,
        )


def reached(spent: Usd, allowed: Usd, percents: Sequence[float]) -> float:
    """The highest of these percentages of what is allowed that is spent; 0: none."""
    if allowed <= 0:
        return 0.0
    return max((each for each in percents if spent >= each / 100 * allowed), default=0.0)


def _waits(job: JobRecord) -> bool:
    """For GPUs, and not for its next try, its user or other jobs."""
    idle = job.run is None and job.allocation is None
    return idle and job.retry_at is None and not job.held_back


def _about(job: JobRecord | None) -> dict[str, Any]:
    if job is None:
        return {}
    return {"class": job.job_class, "owner": job.owner, "team": job.team}


def settled(draft: Draft, notices: Sequence[Notice]) -> None:
    """How far these have come."""
    draft.changes.notices.update({notice.number: notice for notice in notices})
