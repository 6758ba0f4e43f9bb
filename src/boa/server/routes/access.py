"""Who asks, tokens that admins give out, and the audit log."""

import re
import time
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Query, Request

from boa.api import access as answers
from boa.api.tokens import digest, new_token
from boa.errors import InputError
from boa.formats import checks
from boa.model.access import ROLES, Role, TokenRecord
from boa.server.context import Service, answer, only_known_parameters
from boa.server.http.access import caller_of
from boa.server.http.bodies import read_json
from boa.server.http.errors import documented
from boa.server.render import examples
from boa.store.base import StoredAudit
from boa.units import Seconds

PAGE = 1000
LONGEST_S = 10 * 365 * 86_400.0
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
NAMED = "1 to 100 letters, digits and . _ @ + - (a letter or digit first)"
Name = Annotated[str, Path(description="The token's name.", examples=["alice"])]


class AccessRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    def router(self) -> APIRouter:
        router = APIRouter(tags=["access"], dependencies=[Depends(only_known_parameters)])
        add = router.add_api_route
        add("/whoami", self.whoami, responses=documented(401, 403, 422))
        add("/tokens", self.tokens, responses=documented(401, 403, 422))
        add(
            "/tokens",
            self.add_token,
            methods=["POST"],
            status_code=201,
            openapi_extra=examples.body("TokenRequest", examples.TOKEN_REQUEST),
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        add(
            "/tokens/{name}/revoke",
            self.revoke_token,
            methods=["POST"],
            responses=documented(401, 403, 404, 422, 503),
        )
        add("/audit", self.audit, responses=documented(401, 403, 422, 503))
        return router

    async def whoami(self, request: Request) -> answers.WhoAmI:
        """Whoever asks: name, role and team."""
        caller = caller_of(request)
        return {"name": caller.name, "role": caller.role, "team": caller.team}

    async def tokens(self) -> answers.TokenList:
        """Tokens that were given out, by name. Needs the role admin, as all of this below."""
        known = self._service.control.snapshot.tokens
        return {"tokens": [document(known[name]) for name in sorted(known)]}

    async def add_token(self, request: Request) -> answers.NewToken:
        """Give out a token. It is told this once: only its SHA-256 is kept."""
        caller, token = caller_of(request), new_token()
        record = read_request(await read_json(request), digest(token), caller.name)
        kept = await answer(self._service.control.add_token(record, by=caller))
        return {"token": token, "record": document(kept)}

    async def revoke_token(self, request: Request, name: Name) -> answers.TokenAnswer:
        """Take a token back, at once. Of one that was taken back, nothing."""
        by = caller_of(request)
        revoked = await answer(self._service.control.revoke_token(name, by=by))
        return {"record": document(revoked)}

    def audit(
        self,
        since: Annotated[
            float, Query(description="Unix seconds of the wall.", allow_inf_nan=False)
        ] = 0.0,
        who: Annotated[
            str | None, Query(max_length=200, description="Of this token's name only.")
        ] = None,
        before: Annotated[int | None, Query(ge=1, description="Of smaller numbers only.")] = None,
        limit: Annotated[int, Query(ge=1, le=PAGE)] = 100,
    ) -> answers.AuditList:
        """The audit log, newest first: who changed what, from where; and what was refused."""
        found = self._service.store.audit(since=since, who=who, before=before, limit=limit)
        more = found[-1].number if len(found) == limit else None
        return {"lines": [line(one) for one in found], "before": more}


def read_request(body: object, hashed: str, by: str) -> TokenRecord:
    given = checks.mapping(body, "", required=("name", "role"), optional=("team", "expires_in_s"))
    now = time.time()
    expires_at: Seconds | None = None
    if given.get("expires_in_s") is not None:
        expires_at = now + checks.number(
            given["expires_in_s"], "expires_in_s", above=0, most=LONGEST_S
        )
    return TokenRecord(
        name=_named(given["name"], "name"),
        role=cast(Role, checks.choice(given["role"], "role", ROLES)),
        team=_named(given["team"], "team") if given.get("team") else "",
        digest=hashed,
        created_at=now,
        created_by=by,
        expires_at=expires_at,
    )


def _named(value: object, field: str) -> str:
    name = checks.text(value, field)
    if not NAME.fullmatch(name):
        raise InputError(field, name, NAMED)
    return name


def document(token: TokenRecord) -> answers.Token:
    return {
        "name": token.name,
        "role": token.role,
        "team": token.team,
        "created_at": token.created_at,
        "created_by": token.created_by,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "good": token.good_at(time.time()),
    }


def line(stored: StoredAudit) -> answers.AuditLine:
    said = stored.entry
    return {
        "number": stored.number,
        "at": said.at,
        "who": said.who,
        "role": said.role,
        "address": said.address,
        "what": said.what,
        "subject": said.subject,
        "before": None if said.before is None else dict(said.before),
        "after": None if said.after is None else dict(said.after),
        "result": said.result,
        "count": said.count,
    }
