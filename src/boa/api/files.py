"""Files of jobs, as the API tells of them: packages that they run in, logs and artifacts."""

from typing_extensions import TypedDict


class Package(TypedDict):
    """A folder that was packed, by the hash of what is in it."""

    digest: str
    size: int
    """Bytes, packed."""
    files: int
    unpacked: int
    """Bytes of its files."""
    used_at: float
    """Unix seconds of the wall: when it was last uploaded, or submitted with."""


class PackageAnswer(TypedDict):
    package: Package


class PackageList(TypedDict):
    packages: list[Package]
    """Those that the caller may submit with, the latest used first."""
    max_bytes: int
    """Bytes that one may have, packed."""
    keep_days: float
    """Days that one is kept after it was last submitted with."""


class Uploaded(TypedDict):
    received: int
    """Bytes that are here: where the next part begins."""
    package: Package | None
    """Once it is whole, and was found to be one."""


class Artifact(TypedDict):
    path: str
    """Relative to the job's folder of artifacts."""
    size: int
    modified_at: float
    """Unix seconds of the wall."""


class ArtifactList(TypedDict):
    job: str
    files: list[Artifact]
    """By path; the first 10,000."""
    size: int
    """Bytes of all files."""
    more: int
    """Files that are not listed."""
    odd: int
    """Things that are no plain files, which nobody is given."""
    kept_until: float | None
    """By the service's clock; null: as long as the job goes on."""
    now: float


class LogRun(TypedDict):
    """A run of a job that has a log."""

    attempt: int
    ranks: list[int]
    bytes: int
    """Size of what is kept of all workers' logs."""
    began_at: float | None
    """When its first line was printed; null: not noted."""
    last_at: float | None
    """When its last one was."""


class LogRuns(TypedDict):
    runs: list[LogRun]
    now: float
