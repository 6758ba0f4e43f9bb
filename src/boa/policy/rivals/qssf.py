"""QSSF (Helios, SC'21): the job of least predicted service first, nobody is interrupted."""

from dataclasses import dataclass
from typing import ClassVar

from boa.model.cluster import ClusterView, Decision, JobView
from boa.policy.rivals.outlook import Outlook, Outlooks
from boa.policy.rivals.reservation import asked_width, in_turn
from boa.units import GpuName


@dataclass(frozen=True, slots=True)
class Qssf:
    """Jobs run as asked, on the nodes there are, by duration × GPUs; the first one blocks."""

    name: str = "qssf"
    by_job: ClassVar[bool] = False

    def decide(self, view: ClusterView) -> Decision:
        outlooks, gpu = Outlooks(view.gpu_types), next(iter(view.gpu_types))
        queue = sorted(
            view.jobs, key=lambda job: (service_of(job, outlooks.of(job), gpu), job.arrival)
        )
        return Decision(placements=in_turn(view, queue), nodes=tuple(view.nodes))


def service_of(job: JobView, seen: Outlook | None, gpu: GpuName) -> float:
    """GPU-seconds of a job as asked; of one that nothing is known of, none: it goes first."""
    width = asked_width(job)
    at = None if seen is None else seen.column_of(gpu, width)
    return 0.0 if seen is None or at is None else width * float(seen.rest(0, 1.0)[at])
