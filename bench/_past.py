"""A month that was: nodes, holds, jobs and samples as a service of some size would have them.

Made up, at about the rates that `bench/scale.py` measured: of 10,000 GPUs 37,000 holds, 14,000 jobs
and 240 new nodes a day. Every node is full but for short gaps; holds are of one or two GPUs.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from boa.model.changes import Changes
from boa.model.job import JobRecord, JobSpec
from boa.model.records import Hold, NodeRecord, Sample

DAY_S = 86_400.0
CLASSES = 40
LIFE_D = 9.0
"""Days for which a node is rented, on average."""
HELD_S = 4.9 * 3600.0
"""Seconds that a hold lasts, on average."""
BOOT_S, LEAVE_S = 120.0, 60.0
SAMPLE_S = 60.0
AT_ONCE = 20_000


@dataclass(frozen=True)
class Past:
    """`began`: Unix seconds of its first moment; it ends `days` later, with some still running."""

    gpus: int
    days: float
    began: float = 1.8e9 // DAY_S * DAY_S

    @property
    def now(self) -> float:
        return self.began + self.days * DAY_S - 1234.5  # in the middle of an hour

    def changes(self) -> Iterator[Changes]:
        """All of it, in parts that are small enough to be written."""
        random = np.random.default_rng(7)
        nodes = list(self._nodes(random))
        yield Changes(nodes={node.id: node for node in nodes})
        holds = [hold for node in nodes for hold in self._holds(node, random)]
        holds.sort(key=lambda hold: hold.since)
        job, numbered = 0, list[Hold]()
        for hold in holds:  # two or three holds each, as they come
            job += random.random() < 0.39
            numbered.append(_of(hold, max(job, 1)))
        for first in range(0, len(numbered), AT_ONCE):
            some = numbered[first : first + AT_ONCE]
            jobs = {hold.job: _job(hold) for hold in some}
            yield Changes(jobs=jobs, holds={(h.job, h.node, h.since): h for h in some})
        moments = np.arange(self.began, self.now, SAMPLE_S).tolist()
        for first in range(0, len(moments), AT_ONCE):
            yield Changes(samples=[self._sample(at) for at in moments[first : first + AT_ONCE]])

    def _nodes(self, random: np.random.Generator) -> Iterator[NodeRecord]:
        number = 0
        for gpu, gpus, price, part in (("T4", 4, 0.3, 0.75), ("A100", 8, 2.1, 0.25)):
            for _ in range(max(int(self.gpus * part / gpus), 1)):
                at = self.began + random.uniform(0, 3600.0)
                while at < self.now:
                    number += 1
                    gone = at + max(random.exponential(LIFE_D * DAY_S), 2 * BOOT_S + LEAVE_S)
                    yield _node(number, gpu, gpus, price, at, gone, self.now)
                    at = gone

    def _holds(self, node: NodeRecord, random: np.random.Generator) -> Iterator[Hold]:
        assert node.ready_at is not None
        last = self.now if node.released_at is None else node.released_at
        for width in [2] * (node.gpus // 4) + [1] * (node.gpus - 2 * (node.gpus // 4)):
            at = node.ready_at + random.uniform(0, 60.0)
            while at < last:
                end = at + random.exponential(HELD_S)
                name = f"class-{random.integers(CLASSES):02d}"
                until = None if end > self.now and node.gone_at is None else min(end, last)
                yield Hold(
                    job="1",
                    stream=name,
                    node=node.id,
                    gpus=width,
                    price=node.price,
                    since=at,
                    until=until,
                )
                at = end + random.exponential(300.0)

    def _sample(self, at: float) -> Sample:
        active = 5000 * self.gpus // 10_000
        return Sample(
            at=at,
            every_s=SAMPLE_S,
            budget=7000.0 * self.gpus / 10_000,
            effective=6900.0,
            wanted={"T4": 6000 + int(at) % 97, "A100": 2400 + int(at) % 53},
            active=active + int(at) % 101,
            waiting=int(at) % 11,
        )


def _node(
    number: int, gpu: str, gpus: int, price: float, at: float, gone: float, now: float
) -> NodeRecord:
    over = gone <= now
    return NodeRecord(
        id=number,
        token=f"past-{number}",
        gpu=gpu,
        gpus=gpus,
        price=price,
        state="gone" if over else "ready",
        requested_at=at,
        billed_from=at,
        ready_at=at + BOOT_S,
        released_at=gone - LEAVE_S if over else None,
        gone_at=gone if over else None,
    )


def _of(hold: Hold, job: int) -> Hold:
    return Hold(
        job=str(job),
        stream=hold.stream,
        node=hold.node,
        gpus=hold.gpus,
        price=hold.price,
        since=hold.since,
        until=hold.until,
    )


def _job(hold: Hold) -> JobRecord:
    ended = hold.until is not None
    return JobRecord(
        id=hold.job,
        spec=JobSpec(job_class=hold.stream, run=("train",), name=f"job {hold.job}"),
        serial=int(hold.job),
        submitted_at=hold.since,
        started_at=hold.since,
        state="succeeded" if ended else "waiting",
        ended_at=hold.until,
    )
