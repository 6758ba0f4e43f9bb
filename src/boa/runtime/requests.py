"""Requests of users to the loop: each a change of the draft, written down with who asked."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeVar

from boa.errors import InputError
from boa.model.access import ADMIN, NOBODY, AuditEntry, Caller, TokenRecord
from boa.model.cluster import JobId
from boa.model.job import JobRecord, JobSpec
from boa.model.notices import MonthSpent, Notice
from boa.model.placements import FailedPlacement
from boa.runtime.audit import audited
from boa.runtime.fingerprint import fingerprint
from boa.runtime.job_requests import looker
from boa.runtime.sweep_requests import SweepRequests
from boa.runtime.vault import PREFIX, NotTheirs, Secret, uses
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.money.money_state import MoneyState
from boa.scheduler.notices import Notices, settled
from boa.scheduler.observe import commands, tokens
from boa.scheduler.state import Draft
from boa.units import GpuName, Usd, UsdPerHour

_T = TypeVar("_T")


class Requests(SweepRequests):
    """The part of `snapshot.Control` that changes something."""

    profiler: Profiler
    notices: Notices
    _tokens: Mapping[str, TokenRecord]

    def submit(
        self, spec: JobSpec, *, owner: str = "", team: str = "", by: Caller | None = None
    ) -> "Future[JobRecord]":
        return self._ask(self.submitting(spec, owner=owner, team=team, by=by))

    def submitting(
        self,
        spec: JobSpec,
        *,
        owner: str,
        team: str,
        by: Caller | None,
        what: str = "submit",
    ) -> Callable[[Draft], JobRecord]:
        self.places.check(spec, by or NOBODY)  # here, not in the loop: it reads files
        code = fingerprint(spec)

        def apply(draft: Draft) -> JobRecord:
            self.vault.check(spec, by or NOBODY)
            if (before := self.keys.job(draft, owner, spec)) is not None:
                return self.found(draft, before)
            job = commands.submit(
                draft,
                spec,
                self.scheduler.decider.gpu_types,
                self.config.max_nodes,
                one_machine=self.config.engine == "local",
                owner=owner,
                team=team,
                code=code,
                known=self.outcome,
                payer_of=self.scheduler.purse.payer_of,
            )
            self.keys.note(draft, owner, spec, job.id)
            return job

        def made(job: JobRecord) -> dict[str, str]:
            return {"name": job.name, "class": job.job_class, "state": job.state}

        return audited(by, what, apply, subject=lambda job: job.id, made=made)

    def submit_many(
        self,
        specs: Sequence[JobSpec],
        *,
        owner: str = "",
        team: str = "",
        by: Caller | None = None,
    ) -> "Future[list[JobRecord]]":
        for number in _first_of_each(specs).values():
            self.places.check(specs[number], by or NOBODY, f"jobs[{number}].")
        codes = _fingerprints(specs)

        def apply(draft: Draft) -> list[JobRecord]:
            before = self.before(draft, owner, specs)
            new = [number for number in range(len(specs)) if number not in before]
            for number, spec in enumerate(specs):
                self.vault.check(spec, by or NOBODY, f"jobs[{number}].")
            made = commands.submit_many(
                draft,
                [specs[number] for number in new],
                self.scheduler.decider.gpu_types,
                self.config.max_nodes,
                one_machine=self.config.engine == "local",
                owner=owner,
                team=team,
                codes=[codes[number] for number in new],
                known=self.outcome,
                payer_of=self.scheduler.purse.payer_of,
            )
            for number, job in zip(new, made, strict=True):
                self.keys.note(draft, owner, specs[number], job.id)
            jobs = {**before, **dict(zip(new, made, strict=True))}
            return [jobs[number] for number in range(len(specs))]

        def named(jobs: list[JobRecord]) -> str:
            return f"{jobs[0].id}-{jobs[-1].id}" if jobs else ""

        def made(jobs: list[JobRecord]) -> dict[str, object]:
            return {"jobs": len(jobs), "classes": sorted({job.job_class for job in jobs})[:20]}

        return self._ask(audited(by, "submit", apply, subject=named, made=made))

    def set_secret(self, name: str, value: str, *, by: Caller | None = None) -> "Future[Secret]":
        def apply(draft: Draft) -> Secret:
            secret = self.vault.seal(name, value, by=by or NOBODY, now=draft.now)
            told = draft.changes.meta.get(f"{PREFIX}{name}")
            if told is not None and not (by or NOBODY).shares(told["set_by"], told["team"]):
                raise NotTheirs(name)  # it was set a moment ago, in the same step
            self._check_users(draft, secret)
            draft.put_meta(f"{PREFIX}{name}", secret.document())
            return secret

        return _then(self._ask(audited(by, "secret set", apply, subject=name)), self.vault.adopt)

    def _check_users(self, draft: Draft, secret: Secret) -> None:
        """That no active job gets it which may not: its name may have been another's, who has
        removed it while that job runs."""
        if self.vault.is_as_open(secret):
            return
        users = (job for job in draft.jobs.values() if uses(job, secret.name))
        others = [job.id for job in users if not secret.is_for(self._owner_of(job))]
        if others:
            said = f"{secret.name} is named by others' jobs that have not ended: {_some(others)}"
            raise InputError("name", secret.name, "another name: they would get the value", said)

    def _owner_of(self, job: JobRecord) -> Caller:
        token = self._tokens.get(job.owner)
        is_admin = job.owner in (NOBODY.name, ADMIN) or (token and token.role == "admin")
        return Caller(name=job.owner, team=job.team, role="admin" if is_admin else "member")

    def remove_secret(
        self, name: str, *, force: bool = False, by: Caller | None = None
    ) -> "Future[Secret]":
        def apply(draft: Draft) -> Secret:
            secret = self.vault.changeable(name, by or NOBODY)
            users = [job.id for job in draft.jobs.values() if uses(job, name)]
            if users and not force:
                said = f"{name} is used by jobs that have not ended: {_some(users)}"
                expected = "one that no active job uses, or force: their next start waits for it"
                raise InputError("secret", name, expected, said)
            draft.put_meta(f"{PREFIX}{name}", None)
            return secret

        asked = self._ask(audited(by, "secret rm", apply, subject=name))
        return _then(asked, lambda secret: self.vault.drop(secret.name))

    def stop(self, job: JobId, *, by: Caller | None = None) -> "Future[JobRecord]":
        def apply(draft: Draft) -> JobRecord:
            return commands.stop(draft, job, self.stored(draft, job))

        look = looker(job, "stop_requested")
        return self._ask(audited(by, "stop", apply, subject=job, look=look))

    def add_token(self, token: TokenRecord, *, by: Caller | None = None) -> "Future[TokenRecord]":
        return self._ask(
            audited(
                by,
                "token add",
                lambda draft: tokens.add(draft, self._tokens, token),
                subject=token.name,
                look=lambda draft: tokens.shown(draft, self._tokens, token.name),
            )
        )

    def revoke_token(self, name: str, *, by: Caller | None = None) -> "Future[TokenRecord]":
        return self._ask(
            audited(
                by,
                "token revoke",
                lambda draft: tokens.revoke(draft, self._tokens, name, time.time()),
                subject=name,
                look=lambda draft: tokens.shown(draft, self._tokens, name),
            )
        )

    def note(self, lines: Sequence[AuditEntry]) -> "Future[None]":
        return self._ask(lambda draft: draft.changes.audit.extend(lines))

    def settle_notices(self, notices: Sequence[Notice]) -> "Future[None]":
        return self._ask(lambda draft: settled(draft, notices))

    def foretell_month(self, forecast: Usd) -> "Future[None]":
        purse = self.scheduler.purse
        return self._ask(lambda draft: self.notices.foretell(draft, forecast, purse.week))

    def tell_spent(self, spent: Sequence[MonthSpent]) -> "Future[None]":
        return self._ask(lambda draft: self.notices.spent(draft, spent))

    def set_budget(
        self,
        budget: UsdPerHour | None,
        max_spend: UsdPerHour | None = None,
        *,
        by: Caller | None = None,
    ) -> "Future[MoneyState]":
        def apply(draft: Draft) -> MoneyState:
            commands.check_cap(max_spend, self.scheduler.decider.gpu_types)
            self.scheduler.planner.hurry()
            return self.scheduler.purse.set(draft, budget, max_spend)

        def look(draft: Draft) -> dict[str, float | None]:
            purse = self.scheduler.purse
            return {"budget_per_hour": purse.week, "max_spend_per_hour": purse.max_spend}

        return self._ask(audited(by, "budget", apply, look=look))

    def retry_class(
        self,
        job_class: str,
        gpu: GpuName | None = None,
        width: int | None = None,
        *,
        by: Caller | None = None,
    ) -> "Future[list[FailedPlacement]]":
        def apply(draft: Draft) -> list[FailedPlacement]:
            commands.check_type(gpu, self.scheduler.decider.gpu_types)
            found = self.profiler.retry(job_class, gpu, width)
            if found:
                self.scheduler.planner.hurry()
            return found

        def made(found: list[FailedPlacement]) -> dict[str, object]:
            return {"gpu": gpu, "width": width, "forgotten": len(found)}

        return self._ask(audited(by, "class retry", apply, subject=job_class, made=made))


def _fingerprints(specs: Sequence[JobSpec]) -> list[str]:
    """Fingerprint of each; what runs the same in the same folder is read once."""
    known = {_read(spec): spec for spec in specs}
    found = {key: fingerprint(spec) for key, spec in known.items()}
    return [found[_read(spec)] for spec in specs]


def _first_of_each(specs: Sequence[JobSpec]) -> dict[object, int]:
    """Numbers of jobs that name a place for the first time: a sweep names one for all."""
    found: dict[object, int] = {}
    for number, spec in enumerate(specs):
        waits = bool(spec.after)  # which has less of it looked for
        found.setdefault((_read(spec), spec.env.get("PATH"), spec.launcher, waits), number)
    return found


def _read(spec: JobSpec) -> tuple[object, ...]:
    """All that a fingerprint is made of."""
    return tuple(spec.run), spec.workdir, spec.package, spec.environment, spec.image


def _some(jobs: Sequence[JobId]) -> str:
    return ", ".join(jobs[:5]) + (", …" if len(jobs) > 5 else "")


def _then(future: "Future[_T]", do: Callable[[_T], None]) -> "Future[_T]":
    """Do it when the change is stored, whoever still waits for the answer."""

    def done(over: "Future[_T]") -> None:
        if over.exception() is None:
            do(over.result())

    future.add_done_callback(done)
    return future
