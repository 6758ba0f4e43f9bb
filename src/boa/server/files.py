"""Files that jobs bring and leave: packages and artifacts, and the sweep that removes old ones."""

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from boa.engines.passing import passed
from boa.model.cluster import JobId
from boa.model.job_spec import JobSpec
from boa.model.service import ServiceConfig
from boa.runtime.artifacts import ArtifactFolders, Retention
from boa.runtime.packages import ARTIFACTS, PACKAGES, PackageShelf
from boa.runtime.places import Anywhere, KnownPlaces, Places
from boa.runtime.snapshot import Control
from boa.store.base import Store, StoreTrouble
from boa.units import DAY_S, Seconds

EVERY_S: Seconds = 3600.0
"""Seconds of the wall between two sweeps."""
FIRST_S: Seconds = 60.0
_log = logging.getLogger("boa.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFiles:
    packages: PackageShelf
    artifacts: ArtifactFolders
    places: Places
    packages_keep_s: Seconds = 30 * DAY_S
    _over: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def of(cls, config: ServiceConfig) -> Self:
        """As a service is set up. Commands and folders are known where jobs run on its machine."""
        shelf = PackageShelf(config.data_dir / PACKAGES, max_bytes=config.package_bytes)
        retention = Retention(
            keep_s=config.artifacts_kept_days * DAY_S, max_bytes=config.artifacts_bytes
        )
        here = config.engine == "local"
        return cls(
            packages=shelf,
            artifacts=ArtifactFolders(config.data_dir / ARTIFACTS, retention),
            places=KnownPlaces(
                shelf,
                (lambda: passed(os.environ, config.pass_env)) if here else None,
                as_others=config.run_as is not None,
                engine=_of_engine(config),
            ),
            packages_keep_s=config.packages_kept_days * DAY_S,
        )

    @classmethod
    def none(cls) -> Self:
        """Files of a service that keeps none: nothing is there, and nothing can be put there."""
        nowhere = Path(os.devnull)
        return cls(
            packages=PackageShelf(nowhere / PACKAGES),
            artifacts=ArtifactFolders(nowhere / ARTIFACTS),
            places=Anywhere(),
        )

    def sweep(self, control: Control, store: Store) -> None:
        """Remove what is kept no longer."""
        active = control.snapshot.jobs

        def ended_at(job: JobId) -> Seconds | None:
            found = store.job(job)
            return None if found is None else found.ended_at

        in_use = {job.spec.package for job in active.values() if job.spec.package}
        gone = self.packages.sweep(in_use, self.packages_keep_s)
        if gone:
            _log.info("packages that nobody has used for long are removed: %d", len(gone))
        emptied = self.artifacts.sweep(active.keys(), ended_at, control.now())
        if emptied:
            _log.info("artifacts of %d jobs are kept no longer: %s", len(emptied), _some(emptied))

    def start(self, control: Control, store: Store) -> None:
        def run() -> None:
            pause = FIRST_S
            while not self._over.wait(pause):
                pause = EVERY_S
                try:
                    self.sweep(control, store)
                except (OSError, StoreTrouble) as trouble:
                    _log.warning("old files of jobs could not be removed: %s", trouble)

        threading.Thread(target=run, name="boa-files", daemon=True).start()

    def close(self) -> None:
        self._over.set()


def _some(jobs: list[JobId]) -> str:
    return ", ".join(sorted(jobs, key=int)[:10]) + (", …" if len(jobs) > 10 else "")


def _of_engine(config: ServiceConfig) -> Callable[[JobSpec, int], None] | None:
    """Checks of a job that only its engine knows of."""
    if config.engine != "kubernetes":
        return None
    from boa.engines.kubernetes.submitting import checks

    return checks(config.kubernetes)
