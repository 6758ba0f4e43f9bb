"""The log of one pod, followed by a thread into files of the service: live, and to its end."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from boa.backoff import doubled
from boa.engines.kubernetes.frames import Unframed
from boa.engines.kubernetes.template import CONTAINER
from boa.engines.mirror import Mirror
from boa.kubelink import Kube, KubeTrouble, pods
from boa.units import Seconds

FIRST_S: Seconds = 0.1
LONGEST_S: Seconds = 5.0
"""Between two tries, while there is no log, or nobody to ask."""
OVERLAP_S = 60
"""Seconds of a log that are read again when a follower takes over from another."""
LAST_TRIES = 3
"""Tries for what is missing of a log whose pod has ended."""


class Follower:
    """Ends by itself: when all of the log is there, or when it is told that there is no more."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        pod: str,
        mirrors: Mapping[int, Mirror],
        news: Callable[[], None],
    ) -> None:
        self._kube, self._path = kube, f"{pods(namespace, pod)}/log"
        self._mirrors, self._news = mirrors, news
        self._frames = Unframed()
        self._over = threading.Event()
        """The pod's container has ended: nothing will be added to the log."""
        self._expected: Mapping[int, int] = {}
        self._wake = threading.Event()
        self._left = False
        self.following = False
        """Whether all that is printed now arrives."""
        self.done = False
        """Nothing more will come of it."""
        self._thread = threading.Thread(target=self._run, name=f"boa-log-{pod}", daemon=True)
        self._thread.start()

    @property
    def up(self) -> bool:
        """Whether the pod has said that its workers are."""
        return self._frames.up

    @property
    def end(self) -> str:
        """How the pod ended, as its log has it; empty: it does not say."""
        return self._frames.end

    def finish(self, expected: Mapping[int, int]) -> None:
        """The container has ended; bytes of each rank, where that is known."""
        if not self._over.is_set():
            self._expected = expected
            self._over.set()
            self._wake.set()

    def leave(self) -> None:
        """Somebody else goes on with its files, or nobody needs them any more."""
        self._left = self.done = True
        self._over.set()
        self._wake.set()

    def hurry(self) -> None:
        """Try again now: the log may soon be gone."""
        self._wake.set()

    def _run(self) -> None:
        failures = 0
        while not self._over.is_set():
            failures = 0 if self._follow() else failures + 1
            self._news()  # it may have ended
            self._wake.wait(doubled(FIRST_S, max(failures, 1), LONGEST_S))
            self._wake.clear()
        whole = bool(self._expected) and self._is_whole()
        for _ in range(LAST_TRIES):
            if self._left or whole:
                break
            heard = self._follow()
            whole = heard and self._is_whole()
            if not whole:
                time.sleep(FIRST_S)
        self.done = True
        self._news()

    def _is_whole(self) -> bool:
        """Whether all is there that is known of."""
        return all(
            mirror.seen >= self._expected.get(rank, 0) for rank, mirror in self._mirrors.items()
        )

    def _follow(self) -> bool:
        """The log as far as it goes now; whether there was one."""
        query = {"container": CONTAINER, "follow": "true", **self._since()}
        self._frames = _again(self._frames)
        try:
            with self._kube.stream(self._path, **query) as pieces:
                self.following = True
                for piece in pieces:
                    if self._left:
                        return True
                    was_up = self._frames.up
                    for rank, first, data in self._frames.feed(piece):
                        if rank in self._mirrors:
                            self._mirrors[rank].take(first, data)
                    if self._frames.up and not was_up:
                        self._news()
        except KubeTrouble:
            return False
        finally:
            self.following = False
        return True

    def _since(self) -> dict[str, str]:
        """Only what may be new: there is one stream, so what came before the last was before it.
        By the kubelet's clock."""
        times = [os.stat(one.path).st_mtime for one in self._mirrors.values() if one.seen]
        if not times:
            return {}
        return {"sinceSeconds": str(int(max(time.time() - max(times), 0.0)) + OVERLAP_S)}


def _again(frames: Unframed) -> Unframed:
    """For another stream, which begins with a whole line."""
    anew = Unframed()
    anew.up, anew.end = frames.up, frames.end
    return anew


def mirrors_of(folder: str, ranks: Sequence[int], log_bytes: int) -> dict[int, Mirror]:
    return {rank: Mirror(folder, rank, log_bytes) for rank in ranks}
