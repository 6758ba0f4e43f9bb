"""The engine as the service knows it."""

import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from boa.engines.base import NotOver
from boa.engines.kubernetes.cluster import Cluster
from boa.engines.kubernetes.marker import Marker, told_by
from boa.engines.kubernetes.run import KubernetesRun
from boa.engines.kubernetes.status import PodState
from boa.engines.kubernetes.template import read
from boa.engines.remote import RemoteEngine
from boa.engines.remote_folders import RemoteFolders
from boa.kubelink import Kube
from boa.model.cluster import JobId
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.runs import Launch, RunKey
from boa.units import Seconds

STEADY_S: Seconds = 2.0
"""Between two lists of all pods …"""
BUSY_S: Seconds = 0.2
"""… and of those of jobs that are beginning or ending."""


class KubernetesEngine(RemoteEngine[KubernetesRun]):
    """Its pods and Secrets have the owner's label, and are in the namespace of `kube`."""

    def __init__(
        self, root: Path, *, kube: Kube, settings: KubernetesSettings, log_bytes: int
    ) -> None:
        super().__init__(RemoteFolders(root, Marker))
        self._settings, self._log_bytes = settings, log_bytes
        self._template = read(settings.pod_template)
        self._cluster = Cluster(kube, settings.owner)
        self._told: set[JobId] = set()
        """Jobs of which a log has told something."""
        self._telling = threading.Lock()
        self._listed_at = self._all_at = -STEADY_S
        pods = self._cluster.pods()
        for key in self._folders.known():
            self._find_again(key)
        self._sweep(pods)

    def start(self, launch: Launch) -> None:
        for run in self._runs.values():
            if run.key.job == launch.key.job and run.key != launch.key and run.ending is None:
                raise NotOver(f"attempt {run.key.attempt} is not over")
        super().start(launch)

    def close(self) -> None:
        for run in self._runs.values():
            run.leave()
        super().close()

    def _new(self, key: RunKey) -> KubernetesRun:
        return KubernetesRun(
            key,
            self._cluster,
            self._folders,
            self._settings,
            self._template,
            self._log_bytes,
            partial(self._tell, key.job),
        )

    def _tell(self, job: JobId) -> None:
        """By a thread that follows a log: it is worth looking at the job's pods."""
        with self._telling:
            self._told.add(job)

    def _listen(self) -> None:
        """One list: of all pods now and then, else of those where something is about to happen."""
        now = time.monotonic()
        going = [run for run in self._runs.values() if run.ending is None]
        if not going:
            return
        jobs = {run.key.job for run in going if run.busy}
        with self._telling:
            told = self._told & {run.key.job for run in going}
            self._told.clear()
        if now - self._all_at >= STEADY_S:
            jobs, self._all_at = set(), now
        elif told or (jobs and now - self._listed_at >= BUSY_S):
            jobs |= told
        else:
            return
        pods = self._cluster.pods(jobs)
        self._listed_at = time.monotonic()
        for run in going:
            if not jobs or run.key.job in jobs:
                run.see(pods)

    def _find_again(self, key: RunKey) -> None:
        run = self._new(key)
        if run.ending is not None or run.marker.launched:
            self._runs[key] = run
            run.adopt()
            return
        run.adopt()
        self._give_up(run)

    def _sweep(self, pods: Mapping[str, PodState]) -> None:
        """Pods of no run that is known: gone on with, where the run is whole and its folder was
        lost, so that whoever still wants it has it; else removed."""
        known = {name for run in (*self._runs.values(), *self._debris) for name in run.names}
        for name, pod in pods.items():
            if name in known:
                continue
            found = told_by(pod.about)
            if found is not None and self._is_whole(*found, pods):
                key, marker = found
                self._folders.begin(key, marker)
                self._find_again(key)
                known |= set(self._runs[key].names)
                continue
            if found is not None:  # first: nobody else could name them
                self._cluster.remove_secrets(found[1].secrets(self._settings.owner, found[0]))
            self._cluster.remove(pod)

    def _is_whole(self, key: RunKey, marker: Marker, pods: Mapping[str, PodState]) -> bool:
        mine = [pods.get(part.name) for part in marker.parts()]
        gated = len(mine) > 1
        return not self._folders.exists(key) and all(
            pod is not None and pod.tag == marker.tag and (pod.gate or not gated) for pod in mine
        )
