"""Who asks the service for something, what they may, and what is written down of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from boa.units import Seconds

Role: TypeAlias = Literal["viewer", "member", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""
ADMIN = "admin"
"""The name of who has the service's own token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks. The defaults: whoever can reach a service that wants no token."""

    name: str = ""
    """The token's; empty where none is wanted."""
    role: Role = "admin"
    team: str = ""
    address: str = ""
    """Where the request came from."""

    def may_as(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    def owns(self, owner: str) -> bool:
        """Whether something of this owner's is the caller's own, or open to him as an admin."""
        return self.role == "admin" or (bool(owner) and owner == self.name)

    def shares(self, owner: str, team: str) -> bool:
        """The same, or of the caller's own team."""
        return self.owns(owner) or (bool(team) and team == self.team)


NOBODY = Caller()
"""Where nobody is named: services that want no token, and tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token as it is kept: never the token itself."""

    name: str
    role: Role
    digest: str
    """SHA-256 of the token, in hexadecimal."""
    team: str = ""
    created_at: Seconds
    """Unix seconds of the wall, as the others."""
    created_by: str = ""
    expires_at: Seconds | None = None
    revoked_at: Seconds | None = None

    def good_at(self, now: Seconds) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One change that somebody asked for, or that was refused."""

    at: Seconds
    """Unix seconds of the wall."""
    who: str
    """The name of the token; empty where none was wanted, or none known was sent."""
    role: str
    """Empty where it is not known."""
    address: str
    what: str
    """submit, stop, budget, token add, token revoke, what-if, …; refused, where nobody got so far
    as to change anything."""
    subject: str = ""
    """The job, token, … that it is about."""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    result: str = "done"
    """done, or why not."""
    count: int = 1
    """How many alike this line stands for."""
