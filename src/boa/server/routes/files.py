"""Files of jobs: packages, uploaded in parts; artifacts, listed and fetched."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from boa.api import files as answers
from boa.errors import InputError
from boa.model.job import JobRecord
from boa.runtime.packages import MAX_PART, Kept
from boa.server.context import Service, only_known_parameters
from boa.server.files import JobFiles
from boa.server.http.access import caller_of, refusal
from boa.server.http.bodies import read
from boa.server.http.errors import Malformed, documented
from boa.server.http.streams import LiveStream
from boa.server.routes.jobs import JobPath
from boa.units import DAY_S

CHUNK = 256 * 1024
OCTETS = "application/octet-stream"
MAX_PATH = 4096
_DIGEST = re.compile(r"[0-9a-f]{64}")
Digest = Annotated[str, Path(description="SHA-256 of the archive, in hexadecimal.")]


class FileRoutes:
    def __init__(self, service: Service, files: JobFiles) -> None:
        self._service, self._files = service, files
        self._turn: tuple[object, asyncio.Lock] | None = None
        """Uploads take turns: the shelf has one at a time, and who waits for it takes no thread
        that others need. By the event loop."""

    def router(self) -> APIRouter:
        router = APIRouter(tags=["jobs"], dependencies=[Depends(only_known_parameters)])
        add = router.add_api_route
        add("/packages", self.packages, responses=documented(401, 403, 422))
        add("/packages/{digest}", self.package, responses=documented(401, 403, 404, 422))
        octets = {"content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}}
        add(
            "/packages/{digest}",
            self.upload,
            methods=["PUT"],
            openapi_extra={"requestBody": {"required": True, **octets}},
            responses=documented(400, 401, 403, 413, 422, 503),
        )
        add("/jobs/{job}/artifacts", self.artifacts, responses=documented(401, 403, 404, 422, 503))
        add(
            "/jobs/{job}/artifacts/file",
            self.artifact,
            status_code=200,
            response_class=LiveStream,
            responses={
                200: {"description": "The file as it is.", "content": {OCTETS: {}}},
                **documented(401, 403, 404, 422, 503),
            },
        )
        return router

    def packages(self, request: Request) -> answers.PackageList:
        """Packages that one may submit with, and how large one may be."""
        shelf = self._files.packages
        return {
            "packages": [_document(kept) for kept in shelf.listed(caller_of(request))],
            "max_bytes": shelf.max_bytes,
            "keep_days": self._files.packages_keep_s / DAY_S,
        }

    def package(self, request: Request, digest: Digest) -> answers.PackageAnswer:
        """A package, where it is here and the caller's: it need not be uploaded again."""
        return {
            "package": _document(self._files.packages.get(_checked(digest), caller_of(request)))
        }

    async def upload(
        self,
        request: Request,
        digest: Digest,
        total: Annotated[int, Query(ge=1, description="Bytes of the whole package.")],
        offset: Annotated[int, Query(ge=0, description="Where this part begins.")] = 0,
    ) -> answers.Uploaded:
        """Upload a package, in parts of up to 8 MiB that follow each other.

        It is a ustar archive in gzip, of folders and plain files alone, named by the SHA-256 of
        the archive before it is compressed. The last part has it checked and kept.
        """
        name, by = _checked(digest), caller_of(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != OCTETS:
            raise Malformed(f"said to be {kind[:60] or 'of no type'!r} (Content-Type: {OCTETS})")
        data = await read(request, MAX_PART)
        shelf = self._files.packages
        async with self._alone():
            got = await run_in_threadpool(
                lambda: shelf.receive(name, by, offset=offset, total=total, data=data)
            )
        if isinstance(got, int):
            return {"received": got, "package": None}
        told = {"files": got.files, "bytes": got.size}
        await self._service.note(by, "package upload", name[:12], after=told)
        return {"received": total, "package": _document(got)}

    def _alone(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._turn is None or self._turn[0] is not loop:
            self._turn = (loop, asyncio.Lock())
        return self._turn[1]

    def artifacts(self, request: Request, job: JobPath) -> answers.ArtifactList:
        """Files that a job has left in its $BOA_ARTIFACTS.

        For its owner, the owner's team, and admins, as its log is.
        """
        record = self._readable(request, job)
        found, folders = self._files.artifacts.listing(record.id), self._files.artifacts
        return {
            "job": record.id,
            "files": [
                {"path": one.path, "size": one.size, "modified_at": one.modified_at}
                for one in found.files
            ],
            "size": found.size,
            "more": found.more,
            "odd": found.odd,
            "kept_until": folders.retention.kept_until(record.ended_at),
            "now": self._service.control.now(),
        }

    async def artifact(
        self,
        request: Request,
        job: JobPath,
        path: Annotated[str, Query(max_length=MAX_PATH, description="As the list of them has it.")],
    ) -> StreamingResponse:
        """One file that a job has left, as it is."""
        record = await run_in_threadpool(self._readable, request, job)
        file = await run_in_threadpool(self._files.artifacts.open, record.id, path)
        headers = {"content-disposition": "attachment", "x-content-type-options": "nosniff"}
        return LiveStream(_chunks(file), OCTETS, headers, self._service.streams)

    def _readable(self, request: Request, job: str) -> JobRecord:
        record, by = self._service.job(job), caller_of(request)
        if not by.shares(record.owner, record.team):
            said = f"artifacts of job {job} are for its owner, the owner's team, or admins"
            raise refusal(by, said)
        return record


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    try:
        while data := await run_in_threadpool(file.read, CHUNK):
            yield data
    finally:
        file.close()


def _checked(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise InputError(
            "package", digest[:80], "a SHA-256: 64 hexadecimal digits, in small letters"
        )
    return digest


def _document(kept: Kept) -> answers.Package:
    return {
        "digest": kept.digest,
        "size": kept.size,
        "files": kept.files,
        "unpacked": kept.unpacked,
        "used_at": kept.used_at,
    }
