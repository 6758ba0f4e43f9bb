"""Secrets of jobs: set, list, remove. Their values go in and never come out."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request

from boa.api import secrets as secret_answers
from boa.errors import InputError
from boa.formats import checks
from boa.runtime.vault import Secret, uses
from boa.server.context import Service, answer, only_known_parameters
from boa.server.http.access import caller_of
from boa.server.http.bodies import read_json
from boa.server.http.errors import documented
from boa.server.render import examples

SecretPath = Annotated[str, Path(description="The secret's name.", examples=["HF_TOKEN"])]


class SecretRoutes:
    def __init__(self, service: Service) -> None:
        self._service = service

    def router(self) -> APIRouter:
        router = APIRouter(tags=["secrets"], dependencies=[Depends(only_known_parameters)])
        add = router.add_api_route
        add("/secrets", self.secrets, responses=documented(401, 403, 422))
        add(
            "/secrets",
            self.set_secret,
            methods=["POST"],
            status_code=201,
            openapi_extra=examples.body("SecretValue", examples.SECRET_VALUE),
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        add(
            "/secrets/{name}",
            self.remove_secret,
            methods=["DELETE"],
            responses=documented(401, 403, 404, 422, 503),
        )
        return router

    async def secrets(self) -> secret_answers.SecretList:
        """Secrets that are set, by name, without their values."""
        control = self._service.control
        return {
            "secrets": [self._row(secret) for secret in control.vault.secrets()],
            "now": control.now(),
        }

    async def set_secret(self, request: Request) -> secret_answers.SecretAnswer:
        """Set a secret, new or in place of another value. Runs that begin from now on get it."""
        given = checks.mapping(await read_json(request), "", required=("name", "value"))
        name, value = checks.text(given["name"], "name"), given["value"]
        if not isinstance(value, str):  # an error would quote it
            raise InputError("value", None, "text", "is no text")
        by = caller_of(request)
        kept = await answer(self._service.control.set_secret(name, value, by=by))
        return {"secret": self._row(kept)}

    async def remove_secret(
        self,
        request: Request,
        name: SecretPath,
        force: Annotated[
            bool, Query(description="Though active jobs use it: their next start waits for it.")
        ] = False,
    ) -> secret_answers.SecretAnswer:
        """Remove a secret: for good, from the database too. Runs that have it go on."""
        gone = await answer(
            self._service.control.remove_secret(name, force=force, by=caller_of(request))
        )
        return {"secret": self._row(gone)}

    def _row(self, secret: Secret) -> secret_answers.Secret:
        jobs = self._service.control.snapshot.jobs.values()
        return {
            "name": secret.name,
            "set_at": secret.set_at,
            "set_by": secret.set_by,
            "jobs": sum(uses(job, secret.name) for job in jobs),
        }
