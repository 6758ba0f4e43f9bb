"""Questions about who may do what, and about secrets: one method each, as in `api`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from boa.client.wire import Parameters, Wire

if TYPE_CHECKING:
    from boa.api import access as answers
    from boa.api import secrets as secret_answers

PAGE = 1000


class AccessQuestions:
    _wire: Wire

    def whoami(self) -> answers.WhoAmI:
        """Name, role and team of who asks."""
        return cast("answers.WhoAmI", self._wire.ask("GET", "whoami"))

    def tokens(self) -> list[answers.Token]:
        """Tokens that were given out. For admins, as all of these."""
        return cast("answers.TokenList", self._wire.ask("GET", "tokens"))["tokens"]

    def add_token(
        self, name: str, role: str, *, team: str = "", expires_in_s: float | None = None
    ) -> answers.NewToken:
        """The token itself is told this once."""
        body: dict[str, Any] = {"name": name, "role": role}
        body |= {"team": team} if team else {}
        body |= {} if expires_in_s is None else {"expires_in_s": expires_in_s}
        return cast("answers.NewToken", self._wire.ask("POST", "tokens", body=body))

    def revoke_token(self, name: str) -> answers.Token:
        answer = self._wire.ask("POST", f"tokens/{quote(name, safe='')}/revoke")
        return cast("answers.TokenAnswer", answer)["record"]

    def audit(
        self, *, since: float | None = None, who: str | None = None, limit: int = 100
    ) -> list[answers.AuditLine]:
        """Lines of the audit log, newest first."""
        found: list[answers.AuditLine] = []
        before: int | None = None
        while True:
            page = min(PAGE, limit - len(found))
            asked: Parameters = {"since": since, "who": who, "before": before, "limit": page}
            got = cast("answers.AuditList", self._wire.ask("GET", "audit", asked))
            found += got["lines"]
            before = got["before"]
            if before is None or len(found) >= limit:
                return found

    # Secrets of jobs

    def secrets(self) -> list[secret_answers.Secret]:
        """Those that are set, by name, without their values."""
        return self.secret_list()["secrets"]

    def secret_list(self) -> secret_answers.SecretList:
        """The same, with the server's time."""
        return cast("secret_answers.SecretList", self._wire.ask("GET", "secrets"))

    def set_secret(self, name: str, value: str) -> secret_answers.Secret:
        """New, or in place of another value."""
        said = self._wire.ask("POST", "secrets", body={"name": name, "value": value})
        return cast("secret_answers.SecretAnswer", said)["secret"]

    def remove_secret(self, name: str, *, force: bool = False) -> secret_answers.Secret:
        """`force`: though jobs that have not ended use it."""
        said = self._wire.ask("DELETE", f"secrets/{quote(name, safe='')}", {"force": force})
        return cast("secret_answers.SecretAnswer", said)["secret"]
