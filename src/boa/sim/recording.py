"""Figures of a simulation while it runs: sums over jobs, samples over time, events as they come."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from boa.sim.jobs import ActiveJob
from boa.sim.knowledge import Knowledge
from boa.sim.report import ClusterSample, Tally
from boa.units import Seconds

Event = Mapping[str, Any]
Listener = Callable[[Event], None]
SAMPLE_S: Seconds = 37.3
OFF_BEAT = 1.0309
"""No multiple of a round: what lasts less than a round must be seen as often as it is there."""


class Recording:
    def __init__(
        self,
        knowledge: Knowledge,
        span_s: Seconds,
        listener: Listener | None = None,
        *,
        keep_jcts: bool = False,
    ) -> None:
        self.tally = Tally(named={} if keep_jcts else None)
        self.series: list[ClusterSample] = []
        self._knowledge, self._listener = knowledge, listener
        self._every_s = max(SAMPLE_S, span_s / knowledge.settings.samples * OFF_BEAT)
        self._next: Seconds = 0.0

    def due(self, now: Seconds) -> Iterator[Seconds]:
        """Moments up to now that samples are to be taken at."""
        while self._next <= now:
            yield self._next
            self._next += self._every_s

    def sample(self, now: Seconds, jobs: Iterable[ActiveJob], rented_gpus: int) -> None:
        """`jobs`: all that have arrived and not ended, each brought up to now."""
        active, busy, waiting, speedups = 0, 0, 0, 0.0
        for job in jobs:
            active += 1
            held = job.allocation
            if held is None:
                waiting += 1
                continue
            busy += job.width
            speedups += self._knowledge.true_speedup(job.truth, held.gpu, held.shape, job.epoch)
        efficiency = speedups / rented_gpus if rented_gpus else None
        self.series.append(ClusterSample(now, active, waiting, busy, rented_gpus, efficiency))

    def tell(self, now: Seconds, kind: str, job: ActiveJob) -> None:
        if self._listener is None:
            return
        event: dict[str, Any] = {"time_s": now, "event": kind, "job": job.id, "epoch": job.epoch}
        if job.allocation is not None and kind in ("start", "rescale"):
            event |= {
                "gpu_type": job.allocation.gpu,
                "width": job.width,
                "nodes": [list(pair) for pair in job.allocation.nodes],
                "resume_s": job.resume_at,
            }
        self._listener(event)

    def tell_node(self, now: Seconds, kind: str, node: int, **more: Any) -> None:
        if self._listener is not None:
            self._listener({"time_s": now, "event": kind, "node": node, **more})
