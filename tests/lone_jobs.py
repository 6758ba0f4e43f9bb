"""Jobs with curves of their own, and what a rule for single jobs gives them."""

import numpy as np

from boa.model.cluster import Allocation, ClusterView, JobView, Policy, Share
from boa.model.speedup import Floats
from boa.model.workload import GpuType

TYPES = {
    "T4": GpuType(name="T4", price=1.0, gpus_per_node=4),
    "A100": GpuType(name="A100", price=4.0, gpus_per_node=8),
}


class Curves:
    """Amdahl's law by epoch and type: `parallel` by epoch, a type's speed by name."""

    def __init__(self, *parallel: float, widest: int = 16, **speeds: float) -> None:
        self.parallel, self.widest, self.speeds = parallel, widest, speeds or {"T4": 1.0}

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        if gpu not in self.speeds:
            return None
        parallel = self.parallel[min(epoch, len(self.parallel) - 1)]
        widths = np.arange(1, self.widest + 1)
        speed = self.speeds[gpu] / (1 - parallel + parallel / widths)
        return np.tile(np.concatenate([[0.0], speed]), (2, 1))


def job(
    curves: Curves,
    work: tuple[float, ...] = (1000.0,),
    *,
    epoch: int = 0,
    left: float = 1.0,
    held: tuple[str, int] | None = None,
    rescale_s: float = 0.0,
    note: object = None,
) -> JobView:
    return JobView(
        id="a",
        job_class="any",
        arrival=0.0,
        serial=0,
        epoch=epoch,
        left=left,
        work=work,
        prediction=curves,
        allocation=None if held is None else Allocation(held[0], ((0, held[1]),)),
        rescale_s=rescale_s,
        note=note,
    )


def share(policy: Policy, one: JobView, *gpus: str) -> Share:
    types = {gpu: TYPES[gpu] for gpu in gpus or ("T4",)}
    return policy.decide(ClusterView(now=0.0, jobs=[one], nodes=(), gpu_types=types)).shares["a"]
