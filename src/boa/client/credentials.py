"""The token that goes with requests: one that was given, $BOA_TOKEN, or that of a service of this
user, which has told where it is."""

import os
import socket
import time
from urllib.parse import urlsplit

from boa.client.transport import TransportTrouble
from boa.errors import InputError

BELIEVED_S = 1.0
"""How long what a service has told is believed without looking again: it may be another by then."""


class Credentials:
    """`sought`: whether to look for what a service of this user has told of itself."""

    def __init__(self, url: str, token: str | None, *, sought: bool) -> None:
        given = token or os.environ.get("BOA_TOKEN") or None
        self._given = None if given is None else _plain(given)
        self._url, self._sought = url, sought and given is None
        self._found: tuple[str, int, str] | None = None
        self._looked_at = float("-inf")

    @property
    def token(self) -> str | None:
        self._look()
        return self._given if self._found is None else self._found[0]

    @property
    def headers(self) -> dict[str, str]:
        token = self.token
        return {} if token is None else {"Authorization": f"Bearer {token}"}

    def found_another(self) -> bool:
        """Whether the service has told another token since: one that starts takes connections
        before it has told any."""
        before, self._looked_at = self._found, float("-inf")
        self._look()
        return self._found is not None and self._found != before

    def check(self, connected: socket.socket) -> None:
        """Raise where a token that was found would go to another user's process."""
        self._look()
        if self._found is None:
            return
        from boa.api.listeners import is_ours

        _, pid, file = self._found
        if not is_ours(connected, pid):
            raise TransportTrouble(
                "another user's process answers there, which does not get the token of your own "
                f"service (its name for that: {file}; remove it if that service is no more)"
            )

    def _look(self) -> None:
        now = time.monotonic()
        if not self._sought or now - self._looked_at < BELIEVED_S:
            return
        from boa.api.published import found  # which whoever has a token does without

        self._looked_at = now
        one = found(self._url)
        self._found = None
        if one is None:
            return
        if (scheme := urlsplit(one.url).scheme) != urlsplit(self._url).scheme:
            how = "with" if scheme == "https" else "without"
            raise InputError("BOA_SERVER", self._url, f"{one.url}: it is served {how} TLS")
        self._found = one.token, one.pid, str(one.file)


def _plain(token: str) -> str:
    if not token.isascii() or not token.isprintable():
        raise InputError("BOA_TOKEN", "…", "printable ASCII characters", "has other characters")
    return token
