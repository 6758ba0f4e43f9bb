"""Every job on so many GPUs from start to end, on nodes that come and go: pure physics."""

from dataclasses import dataclass
from typing import ClassVar

from boa.model.cluster import ClusterView, Decision, JobView, Share
from boa.units import GpuName


@dataclass(frozen=True, slots=True)
class Fixed:
    width: int
    name: str = "fixed"
    by_job: ClassVar[bool] = True

    def decide(self, view: ClusterView) -> Decision:
        first = next(iter(view.gpu_types))
        return Decision(shares={job.id: self._share(job, first) for job in view.jobs})

    def _share(self, job: JobView, gpu: GpuName) -> Share:
        return Share(gpu, self.width)
