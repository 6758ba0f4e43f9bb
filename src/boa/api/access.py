"""Who asks, tokens, and the audit log, as the API tells them. Times are the wall's, not the
server's: Unix seconds."""

from typing import Any

from typing_extensions import TypedDict

from boa.model.access import Role


class WhoAmI(TypedDict):
    """Whoever asks, as the service knows them."""

    name: str
    """The token's; empty where the service wants none."""
    role: Role
    team: str


class Token(TypedDict):
    """A token that was given out, without the token itself."""

    name: str
    role: Role
    team: str
    created_at: float
    created_by: str
    expires_at: float | None
    revoked_at: float | None
    good: bool
    """Whether it opens anything now."""


class TokenList(TypedDict):
    tokens: list[Token]


class NewToken(TypedDict):
    """The only time that the token itself is told."""

    token: str
    record: Token


class TokenAnswer(TypedDict):
    record: Token


class AuditLine(TypedDict):
    """One change, or refused requests of one kind."""

    number: int
    at: float
    who: str
    """The name of the token; empty where none was wanted, or none that is known was sent."""
    role: str
    address: str
    what: str
    """submit, stop, budget, token add, token revoke, what-if, what-if stop, refused, …"""
    subject: str
    """The job, the token, …; of refused requests, method and path."""
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    result: str
    """done, or why not; of refused requests, the status."""
    count: int
    """How many requests this line stands for."""


class AuditList(TypedDict):
    """Newest first."""

    lines: list[AuditLine]
    before: int | None
    """How to go on; null where there is no more."""
