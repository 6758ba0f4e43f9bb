"""Runs that are prepared while the one before goes on: processes that wait to be their workers
(`processes/spare_workers.py`), in a folder that becomes the run's."""

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from boa.engines.launching import ProcessPlan
from boa.engines.processes import run_files, spare_workers
from boa.engines.processes.parent_pool import WarmParents
from boa.engines.processes.warm_scripts import Recipe
from boa.model.cluster import JobId
from boa.private_files import private_file
from boa.units import Seconds

AWAKE_S: Seconds = 5.0
"""A stop waits so long for the next run to be prepared. Training goes on meanwhile."""
WAKE_BY = ("CUDA_VISIBLE_DEVICES", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
"""Variables that say which GPU is a worker's."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    folder: str
    recipe: Recipe
    until: Seconds
    """When nobody waits any longer for it to be awake (monotonic)."""


class Spares:
    """At most one run to a job."""

    def __init__(self, place: str, parents: WarmParents) -> None:
        """`place`: where folders are until they are a run's."""
        self._place, self._parents = place, parents
        self._prepared: dict[JobId, _Prepared] = {}

    def prepare(self, job: JobId, recipe: Recipe, plans: Sequence[ProcessPlan]) -> None:
        """Have processes for such workers; harmless if there can be none."""
        over = time.monotonic() - spare_workers.MOST_S
        for old in [old for old, found in self._prepared.items() if found.until < over]:
            self.drop(old)
        self.drop(job)
        workers = [{n: plan["env"][n] for n in WAKE_BY if n in plan["env"]} for plan in plans]
        try:
            folder = tempfile.mkdtemp(dir=self._place)
            self._prepared[job] = _Prepared(folder, recipe, time.monotonic() + AWAKE_S)
            told = run_files.packed({"workers": workers})
            private_file(os.path.join(folder, spare_workers.SPARE), told)
            asked = self._parents.have_spares(recipe, folder)
        except OSError:  # the disk is full, say: who waits for it to be prepared stops all the same
            asked = False
        if not asked:
            self.drop(job)

    def waits(self, job: JobId) -> bool:
        """Whether to wait for it to be awake."""
        found = self._prepared.get(job)
        if found is None or time.monotonic() >= found.until:
            return False
        return not os.path.exists(os.path.join(found.folder, spare_workers.AWAKE))

    def take(self, job: JobId, recipe: Recipe | None) -> str | None:
        """The folder to begin the job's next run in, if there is one. `recipe`: of the parent that
        is asked for that; another's spares would wait in vain, on the GPUs of the run."""
        found = self._prepared.get(job)
        if found is None or found.recipe != recipe or not os.path.isdir(found.folder):
            self.drop(job)
            return None
        return self._prepared.pop(job).folder

    def drop(self, job: JobId) -> None:
        """Nobody will begin it."""
        found = self._prepared.pop(job, None)
        if found is not None:  # they end with the folder
            shutil.rmtree(found.folder, ignore_errors=True)


def send_away(folder: str) -> None:
    """Whoever waits in the folder of a run that another begins."""
    with suppress(OSError):
        os.unlink(os.path.join(folder, spare_workers.SPARE))
