"""Tokens that admins give out and take back: each changes the draft. All pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from boa.errors import InputError
from boa.model.access import ADMIN, TokenRecord
from boa.scheduler.refusals import NoSuchToken
from boa.scheduler.state import Draft
from boa.units import Seconds

Known = Mapping[str, TokenRecord]
MOST = 10_000


def add(draft: Draft, known: Known, token: TokenRecord) -> TokenRecord:
    """`known`: what is stored, by name. A name is free again once its token was revoked."""
    before = _found(draft, known, token.name)
    if token.name == ADMIN:
        expected = "another name: this is the service's own token's"
        raise InputError("name", token.name, expected)
    if before is not None and before.good_at(token.created_at):
        expected = f"a name that no token has (boa token revoke {token.name} frees it)"
        raise InputError("name", token.name, expected, "there is such a token")
    if before is None and len(known) >= MOST:
        raise InputError("name", token.name, f"at most {MOST:,} names of tokens")
    draft.changes.tokens[token.name] = token
    return token


def revoke(draft: Draft, known: Known, name: str, at: Seconds) -> TokenRecord:
    """One that is revoked stays as it is."""
    token = _found(draft, known, name)
    if token is None:
        raise NoSuchToken(name)
    if token.revoked_at is None:
        token = draft.changes.tokens[name] = replace(token, revoked_at=at)
    return token


def shown(draft: Draft, known: Known, name: str) -> Mapping[str, Any] | None:
    """A token as the audit log has it: not even its digest."""
    token = _found(draft, known, name)
    if token is None:
        return None
    return {
        "role": token.role,
        "team": token.team,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
    }


def _found(draft: Draft, known: Known, name: str) -> TokenRecord | None:
    """Also one of the same step."""
    return draft.changes.tokens.get(name) or known.get(name)
