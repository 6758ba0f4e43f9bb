"""Questions around jobs: packages that are sent with them, estimates before they are submitted,
artifacts that they leave."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from boa.client.documents import job_path, unsent
from boa.errors import FileError, Refused
from boa.model.job_spec import PACK, JobSpec

if TYPE_CHECKING:
    from boa.api import estimates
    from boa.api import files as answers
    from boa.client.wire import Wire

PART = 4 * 1024**2
"""Bytes of a package that are sent at a time."""
NOT_FOUND = 404


class FileQuestions:
    _wire: Wire

    # Packages

    def packages(self) -> answers.PackageList:
        """Those that one may submit with, and how large one may be."""
        return cast("answers.PackageList", self._wire.ask("GET", "packages"))

    def pack(self, folder: str | Path) -> str:
        """Pack a folder, without what its .boaignore names, and upload it unless it is there. Gives
        its digest, which a job names as its `package`."""
        from boa.packing.pack import pack

        package = pack(folder, most=self.packages()["max_bytes"])
        path = f"packages/{package.digest}"
        try:
            self._wire.ask("GET", path)
        except Refused as refused:
            if refused.status != NOT_FOUND:
                raise
            total = len(package.data)
            for offset in range(0, total, PART):
                part = package.data[offset : offset + PART]
                self._wire.put(path, {"total": total, "offset": offset}, part)
        return package.digest

    def resolved(
        self, document: dict[str, Any], packed: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """A job as it is sent: its `env_file` read, and its folder packed and uploaded where it is
        to run in a copy of it. `packed`: digests of folders that were, for all who share one."""
        if "env_file" in document:
            from boa.formats.job_places import with_env_file

            document = with_env_file(document, Path())
        folder = document.get("workdir")
        if document.get("package") == PACK and isinstance(folder, str):
            rest = {key: value for key, value in document.items() if key != "workdir"}
            known = {} if packed is None else packed
            if folder not in known:
                known[folder] = self.pack(folder)
            document = {**rest, "package": known[folder]}
        return document

    def estimate(self, spec: JobSpec | Mapping[str, Any]) -> estimates.JobEstimate:
        """Estimate of a job: time, cost, width by epoch, what waits before it. Nothing is
        submitted or uploaded."""
        found = self._wire.ask("POST", "jobs/estimate", body=unsent(spec))
        return cast("estimates.EstimateAnswer", found)["estimate"]

    # Artifacts

    def artifacts(self, job: str) -> answers.ArtifactList:
        """Files that a job has left in its $BOA_ARTIFACTS."""
        found = self._wire.ask("GET", f"{job_path(job)}/artifacts")
        return cast("answers.ArtifactList", found)

    def artifact(self, job: str, path: str) -> Iterator[bytes]:
        """One of them, in pieces."""
        asked = f"{job_path(job)}/artifacts/file"
        with self._wire.stream(asked, {"path": path}) as answer:
            yield from answer.pieces

    def fetch_artifact(self, job: str, path: str, to: str | Path) -> Path:
        """One of them into a folder, under its own path. A file that is there is replaced once the
        new one is whole."""
        from boa.packing.archive import BadPackage, checked_path

        try:
            target = Path(to) / checked_path(path)  # the server's word is not taken for it
        except BadPackage as bad:
            raise FileError(path, str(bad), "a path within the folder") from None
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.parent.resolve().is_relative_to(Path(to).resolve()):
                raise FileError(str(target), "leads out of the folder", "another folder to put it")
            _write(target, self.artifact(job, path))
        except OSError as trouble:
            problem = (trouble.strerror or str(trouble)).lower()
            raise FileError(str(target), problem, "a file that can be written") from None
        return target


def _write(target: Path, pieces: Iterator[bytes]) -> None:
    fd, draft = tempfile.mkstemp(prefix=f".{target.name[:50]}.", dir=target.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found
