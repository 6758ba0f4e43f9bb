"""The API server, asked plainly: what it does, not what the project's client makes of it."""

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from kube.certificates import Pair
from kube.waiting import until

MERGE = "application/merge-patch+json"


class ApiTrouble(Exception):
    """An answer that is not 2xx."""

    def __init__(self, method: str, path: str, code: int, said: str) -> None:
        self.code = code
        super().__init__(f"{method} {path}: {code} {said[:600]}")


class Api:
    """As administrator, or as whoever has `token`; safe to use from several threads."""

    def __init__(self, server: str, authority: Path, pair: Pair | None, token: str = "") -> None:
        context = ssl.create_default_context(cafile=str(authority))
        if pair:
            context.load_cert_chain(pair.certificate, pair.key)
        head = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(
            base_url=server, verify=context, headers=head, timeout=300, trust_env=False
        )

    def close(self) -> None:
        self._client.close()

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **query: str
    ) -> Any:
        """The answer.

        Raises:
            ApiTrouble: the API says no.
            httpx.TransportError: nobody answers.
        """
        answer = self._client.request(
            method,
            path,
            json=body,
            params=query,
            headers={"Content-Type": kind} if body is not None else {},
        )
        if not answer.is_success:
            raise ApiTrouble(method, path, answer.status_code, answer.text)
        return answer.json()

    def get(self, path: str, **query: str) -> Any:
        return self.ask("GET", path, **query)

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        return self.ask("POST", path, body)

    def patch(self, path: str, body: Any, kind: str = MERGE) -> Any:
        return self.ask("PATCH", path, body, kind)

    def delete(self, path: str, grace_s: int | None = None) -> None:
        """Gone already is fine."""
        body = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        try:
            self.ask("DELETE", path, body)
        except ApiTrouble as trouble:
            if trouble.code != 404:
                raise

    def found(self, path: str) -> Any:
        """What is there, or None."""
        try:
            return self.get(path)
        except ApiTrouble as trouble:
            if trouble.code == 404:
                return None
            raise

    def text(self, path: str, **query: str) -> str:
        answer = self._client.get(path, params=query)
        if not answer.is_success:
            raise ApiTrouble("GET", path, answer.status_code, answer.text)
        return answer.text

    @contextmanager
    def lines(self, path: str, **query: str) -> Iterator[Iterator[str]]:
        """Lines as they come: a followed log, or a watch."""
        with self._client.stream("GET", path, params=query) as answer:
            if not answer.is_success:
                raise ApiTrouble("GET", path, answer.status_code, answer.read().decode())
            yield answer.iter_lines()

    def until(self, what: str, path: str, check: Callable[[Any], Any], limit_s: float = 300) -> Any:
        """What is at `path`, once `check` is true of it; None is what is not there."""

        def checked() -> Any:
            found = self.found(path)
            return (found if found is not None else True) if check(found) else None

        return until(what, checked, limit_s)
