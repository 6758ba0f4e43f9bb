"""Tokens, the audit log and secrets of the tests' control loop."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from boa.errors import BoaError
from boa.model.access import NOBODY, AuditEntry, Caller, TokenRecord
from boa.runtime.vault import Secret, Vault
from boa.scheduler.refusals import NoSuchToken
from reading import FakeStore

_T = TypeVar("_T")


def done(value: _T) -> "Future[_T]":
    future: Future[_T] = Future()
    future.set_result(value)
    return future


def failed(problem: BoaError) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_exception(problem)
    return future


class FakeAccess:
    """For a `FakeControl`, which has these."""

    store: FakeStore
    clock: float
    tokens: Mapping[str, TokenRecord]
    vault: Vault
    busy: BoaError | None
    stuck: bool
    _write_down: Callable[..., None]
    _refuse: Callable[[], "Future[Any]"]

    def add_token(self, token: TokenRecord, *, by: Caller | None = None) -> "Future[TokenRecord]":
        self._write_down(by, "token add", token.name)
        self.tokens = {**self.tokens, token.name: token}
        return done(token)

    def revoke_token(self, name: str, *, by: Caller | None = None) -> "Future[TokenRecord]":
        if name not in self.tokens:
            return failed(NoSuchToken(name))
        self._write_down(by, "token revoke", name)
        token = replace(self.tokens[name], revoked_at=1.0)
        self.tokens = {**self.tokens, name: token}
        return done(token)

    def note(self, lines: Sequence[AuditEntry]) -> "Future[None]":
        self.store.audited.extend(lines)
        return done(None)

    def set_secret(self, name: str, value: str, *, by: Caller | None = None) -> "Future[Secret]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        try:
            secret = self.vault.seal(name, value, by=by or NOBODY, now=self.clock)
        except BoaError as problem:
            return failed(problem)
        self.vault.adopt(secret)
        return done(secret)

    def remove_secret(
        self, name: str, *, force: bool = False, by: Caller | None = None
    ) -> "Future[Secret]":
        if self.busy is not None or self.stuck:
            return self._refuse()
        try:
            secret = self.vault.changeable(name, by or NOBODY)
        except BoaError as problem:
            return failed(problem)
        self.vault.drop(name)
        return done(secret)
