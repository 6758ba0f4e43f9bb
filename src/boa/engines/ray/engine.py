"""The engine as the service knows it."""

from collections.abc import Sequence
from pathlib import Path

from boa.engines.keepers import SHARE
from boa.engines.ray.cluster import Cluster
from boa.engines.ray.folders import Folders
from boa.engines.ray.run import RayRun
from boa.engines.remote import RemoteEngine
from boa.model.runs import RunKey


class RayEngine(RemoteEngine[RayRun]):
    """Its groups and actors are in the cluster under `namespace`."""

    def __init__(
        self,
        root: Path,
        *,
        address: str,
        namespace: str,
        log_bytes: int,
        pass_env: Sequence[str] = (),
        memory_share: float = SHARE,
    ) -> None:
        """`memory_share`: of a node's memory, for state that stays there between two runs."""
        super().__init__(Folders(root))
        self._log_bytes, self._pass_env = log_bytes, tuple(pass_env)
        self._memory_share = memory_share
        self._cluster = Cluster(address, namespace)
        for key in self._folders.known():
            self._find_again(key)
        going = [run.name for run in self._runs.values() if run.ending is None]
        self._cluster.sweep(going)

    def _new(self, key: RunKey) -> RayRun:
        marker = self._folders.marker(key)
        return RayRun(
            key,
            self._cluster,
            self._folders,
            self._log_bytes,
            marker,
            self._pass_env,
            self._memory_share,
        )

    def _listen(self) -> None:
        refs = {ref: (run, n) for run in self._runs.values() for ref, n in run.refs().items()}
        for ref, answer in self._cluster.answers(refs):
            run, number = refs[ref]
            if run.ending is None:
                run.heard(number, answer)

    def _find_again(self, key: RunKey) -> None:
        run = self._new(key)
        if run.ending is None and not self._folders.marker(key).launched:
            run.withdraw_token()
            self._folders.drop(key)  # the sweep kills what there is of it
            return
        self._runs[key] = run
        if run.ending is None:
            run.adopt()
