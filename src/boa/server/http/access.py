"""Who asks: by the service's own token, by one that an admin gave out, or by a proxy's word."""

import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from boa.api.tokens import digest
from boa.errors import BoaError
from boa.model.access import ADMIN, Caller, Role, TokenRecord
from boa.server.http.errors import Expired, Forbidden, NotAllowed, Unauthorized

CALLER = "boa.caller"
"""Where a request's scope has who asks."""
STILL = "boa.still"
"""Where it has how to ask whether that is so still, for answers that go on."""
LONGEST_NAME = 200
Known = Mapping[str, TokenRecord]


@dataclass(frozen=True, slots=True)
class TrustedProxy:
    """A reverse proxy that says in a header who asks."""

    header: str
    addresses: tuple[str, ...]
    """The proxies' own, or networks of them."""
    role: Role = "member"
    """The role of users without a token of their name."""

    def is_at(self, address: str) -> bool:
        try:
            return any(ip_address(address) in ip_network(one) for one in self.addresses)
        except ValueError:
            return False


class Access:
    """`token`: the service's own; None: it wants none. `known`: those given out, by name: the same
    mapping as long as they stay the same."""

    def __init__(
        self, token: str | None, known: Callable[[], Known], proxy: TrustedProxy | None = None
    ) -> None:
        self._own = None if token is None else digest(token)
        self._known, self._proxy = known, proxy
        self._indexed: tuple[Known, Mapping[str, TokenRecord]] = ({}, {})

    @property
    def wanted(self) -> bool:
        return self._own is not None

    def caller(self, headers: Headers, address: str) -> Caller:
        """Raises Unauthorized, or Expired; never says which of all tokens came near."""
        given = bearer(headers)
        named = None if self._proxy is None else headers.get(self._proxy.header)
        if self._proxy is not None and named is not None and self._proxy.is_at(address):
            if not ip_address(address).is_loopback or self._is_own(given):
                return self._named(named, self._proxy.role, _through(headers, address))
            raise Unauthorized(given is not None)  # any user of this machine could say so
        if given is None:
            raise Unauthorized(False)
        if self._is_own(given):
            return Caller(name=ADMIN, role="admin", address=address)
        token = self._by_digest().get(digest(given))
        if token is None or token.revoked_at is not None:
            raise Unauthorized(True)
        if not token.good_at(time.time()):
            raise Expired(token.name)
        return Caller(name=token.name, role=token.role, team=token.team, address=address)

    def still(self, headers: Headers, address: str, caller: Caller) -> bool:
        """Whether a request that was let in as theirs would be so now."""
        try:
            return self.caller(headers, address) == caller
        except BoaError:
            return False

    def _is_own(self, given: bytes | None) -> bool:
        own = self._own
        return given is not None and own is not None and hmac.compare_digest(digest(given), own)

    def _named(self, name: str, role: Role, address: str) -> Caller:
        """Whom a proxy names. Who has a token of that name has its role; once it is revoked or
        over, none."""
        if not name or len(name) > LONGEST_NAME or not name.isprintable() or name == ADMIN:
            raise Forbidden("the proxy names no user that can be one here")
        token = self._known().get(name)
        if token is None:
            return Caller(name=name, role=role, address=address)
        if not token.good_at(time.time()):
            raise Expired(token.name)
        return Caller(name=name, role=token.role, team=token.team, address=address)

    def _by_digest(self) -> Mapping[str, TokenRecord]:
        known = self._known()
        if known is not self._indexed[0]:
            self._indexed = known, {token.digest: token for token in known.values()}
        return self._indexed[1]


def bearer(headers: Headers) -> bytes | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip().encode("latin-1") if kind.lower() == "bearer" and token else None


def _through(headers: Headers, address: str) -> str:
    """The address that the proxy has last seen, and its own."""
    seen = headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    try:
        return f"{ip_address(seen)} through {address}"
    except ValueError:
        return address


def address_of(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def caller_of(request: Request) -> Caller:
    """Who asks, as the guard has found; where no token is wanted, whoever that is."""
    found: Caller | None = request.scope.get(CALLER)
    if found is None:  # a route that needs to know, on a path that is open to everybody
        raise Unauthorized(False)
    return found


def check_role(caller: Caller, needed: Role, what: str) -> None:
    if not caller.may_as(needed):
        raise refusal(caller, f"{what} needs the role {needed}")


def refusal(caller: Caller, why: str) -> BoaError:
    return NotAllowed(caller.name, caller.role, why)
