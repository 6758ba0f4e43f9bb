"""Notices: what somebody outside is told of, whom, and how far that has come."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from boa.model.cluster import JobId
from boa.units import Seconds, Usd

NoticeKind: TypeAlias = Literal[
    "ended", "failed", "preempted", "budget", "cap", "forecast", "spent", "test"
]
"""`ended`: a job did, well or not; `failed`: it did, and badly; `preempted`: BOA took all GPUs of a
running job; `budget`: too small for what is
submitted; `cap`: jobs wait for the cap on the spend; `forecast`: the month costs more than meant;
`spent`: so many percent of the month's budget, or of a part's, are spent; `test`: somebody
tries whether it arrives."""
NOTICE_KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)[:-1]
"""Those that a target may ask for."""
TargetKind: TypeAlias = Literal["webhook", "slack", "email"]
TARGET_KINDS: tuple[TargetKind, ...] = get_args(TargetKind)
ALERTS = (50.0, 80.0, 100.0)
"""Percent of a month's budget, where nobody names others."""
Security: TypeAlias = Literal["starttls", "tls", "none"]
SECURITIES: tuple[Security, ...] = get_args(Security)
NoticeState: TypeAlias = Literal["waiting", "delivered", "given_up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFrom:
    """Where a secret of a target is: a file, or the vault by its name. Never the value itself."""

    file: Path | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyTarget:
    """Somewhere that notices are sent to: what an admin has written into `boa.yaml`."""

    name: str
    kind: TargetKind
    tell: tuple[NoticeKind, ...] = NOTICE_KINDS
    teams: tuple[str, ...] = ()
    """Teams whose jobs it is told of; empty: all."""
    owners: tuple[str, ...] = ()
    month_usd: Usd | None = None
    """Cost of a month above which `forecast` is told, and that `spent` is of; None: what the budget
    allows."""
    alerts: tuple[float, ...] = ALERTS
    """Percent of the month's budget at which `spent` is told."""
    url: str = ""
    """Where a webhook is; empty: in `secret_url`."""
    secret_url: SecretFrom | None = None
    key: SecretFrom | None = None
    """Key that webhooks are signed with."""
    to: tuple[str, ...] = ()
    """Addresses of an e-mail."""
    sender: str = ""
    smtp: str = ""
    """HOST or HOST:PORT."""
    security: Security = "starttls"
    user: str = ""
    password: SecretFrom | None = None

    def wants(self, kind: NoticeKind) -> bool:
        """A failure is an end as well."""
        return kind in self.tell or (kind == "failed" and "ended" in self.tell)

    def hears_of_part(self, part: str) -> bool:
        """Whether money of a part of the budget (empty: of the whole) is told here: who asks for
        the jobs of some teams or owners is told of the parts that are called so."""
        return not (self.teams or self.owners) or part in self.teams or part in self.owners

    def is_about(self, owner: str, team: str) -> bool:
        """Whether jobs of theirs are told of here."""
        if not self.teams and not self.owners:
            return True
        return owner in self.owners or team in self.teams


def alerts_of(targets: Iterable[NotifyTarget]) -> list[float]:
    """Percents at which anybody is told of `spent`, in order; where nobody is, those by default."""
    told = {percent for one in targets if one.wants("spent") for percent in one.alerts}
    return sorted(told or ALERTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthSpent:
    """Dollars spent in the month so far, by the whole or by a part of the budget."""

    month: Seconds
    """Its beginning."""
    part: str
    """Empty: the whole."""
    spent: Usd
    allowed: Usd
    """Budget of the whole month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something to be told to one target. Replaced as it gets on; delivered at least once."""

    number: int
    """Rises by time."""
    target: str
    kind: NoticeKind
    at: Seconds
    """When it happened, in the service's time."""
    text: str
    job: JobId | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    """JSON: what the event has beside its words. Nothing from logs."""
    state: NoticeState = "waiting"
    tries: int = 0
    due_at: Seconds = 0.0
    """When it is tried next, in seconds of the wall …"""
    done_at: Seconds | None = None
    """… and when it was delivered, or given up."""
    error: str = ""
    """Why the last try failed."""

    @property
    def name(self) -> str:
        """No other notice's: an older copy of the database gives the same numbers again, and who
        has had the first under one would take the second for it."""
        return f"{self.number}.{int(self.at)}"
