"""Whatever is wanted and whatever can be had: within the room, stable, and nobody waits in vain."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.cluster import Allocation, Node, Share
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.placement.fitting import Fitted, Room, Want, fit
from boa.placement.packing import place

GPUS = ("T4", "V100", "A100")
many = settings(max_examples=120)


@dataclass(frozen=True)
class Scaled:
    """Speeds that are the width to a power, times a factor by type; 0 below a base."""

    factors: Mapping[str, float]
    power: float
    base: int

    def rates(self, gpu: str, epoch: int) -> Floats | None:
        if gpu not in self.factors:
            return None
        widths = np.arange(17.0)
        rates: Floats = np.where(widths < self.base, 0.0, self.factors[gpu] * widths**self.power)
        return np.stack([rates, 0.9 * rates])


@st.composite
def wants(draw: st.DrawFn, types: tuple[str, ...], arrival: float) -> Want:
    least = draw(st.sampled_from([1, 1, 1, 2, 3]))
    width = draw(st.integers(least, 16))
    gpu = draw(st.sampled_from(types))
    allowed = (gpu, *draw(st.sets(st.sampled_from(types)))) if draw(st.booleans()) else ()
    known = {name: draw(st.sampled_from([0.5, 1.0, 4.0])) for name in types if draw(st.booleans())}
    base = draw(st.integers(1, width))
    prediction = Scaled({gpu: 1.0, **known}, 0.8, base) if draw(st.booleans()) else None
    return Want(
        share=Share(gpu, width),
        min=least,
        max=draw(st.integers(width, 16)),
        types=allowed,
        arrival=arrival,
        prediction=prediction,
    )


@st.composite
def rooms(draw: st.DrawFn, types: tuple[str, ...]) -> Room:
    limits = {gpu: draw(st.integers(0, 4)) for gpu in types if draw(st.integers(0, 2))}
    return Room(max_nodes=limits, spend_left=draw(st.none() | st.integers(0, 40).map(float)))


@dataclass
class Cluster:
    """What a service would go on with: nodes come at once, and are gone a decision later."""

    gpu_types: Mapping[str, GpuType]
    max_nodes: Mapping[str, int]
    cap: float | None
    wants: dict[str, Want] = field(default_factory=dict)
    held: Mapping[str, Allocation] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    next_node: int = 0
    leaving: tuple[Node, ...] = ()

    @property
    def spend(self) -> float:
        rented = (*self.nodes, *self.leaving)
        return sum(self.gpu_types[node.gpu].price * node.gpus for node in rented)

    @property
    def room(self) -> Room:
        left = None if self.cap is None else self.cap - self.spend
        going = Counter(node.gpu for node in self.leaving)
        return Room(max_nodes=self.max_nodes, spend_left=left, releasing=going)

    def fit(self) -> Fitted:
        return fit(self.wants, self.held, self.nodes, self.gpu_types, self.next_node, self.room)

    def apply(self, fitted: Fitted) -> None:
        nodes = (*self.nodes, *fitted.new_nodes)
        self.nodes = tuple(node for node in nodes if node.id not in fitted.give_back)
        self.leaving += tuple(node for node in nodes if node.id in fitted.give_back)
        self.next_node = max([self.next_node, *(node.id + 1 for node in fitted.new_nodes)])
        self.held = fitted.allocations

    def free(self, gpu: str) -> float:
        """GPUs that could be had on top, on nodes that are there or that there is room for."""
        kind, here = self.gpu_types[gpu], [node for node in self.nodes if node.gpu == gpu]
        going = sum(node.gpu == gpu for node in self.leaving)
        more = self.max_nodes[gpu] - len(here) - going if gpu in self.max_nodes else 99
        if self.cap is not None:
            price = kind.price * kind.gpus_per_node
            more = min(more, int((self.cap - self.spend) / price + 1e-9))
        used = sum(a.width for a in self.held.values() if a.gpu == gpu)
        return (len(here) + max(more, 0)) * kind.gpus_per_node - used


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    types = GPUS[: draw(st.integers(1, 3))]
    room = draw(rooms(types))
    gpu_types = {
        gpu: GpuType(name=gpu, price=price, gpus_per_node=draw(st.sampled_from([1, 2, 4, 8])))
        for gpu, price in zip(types, (1.0, 2.5, 4.0), strict=False)
    }
    return Cluster(gpu_types, room.max_nodes, room.spend_left)


@st.composite
def stories(draw: st.DrawFn) -> list[Cluster]:
    """A cluster before each of its decisions, as jobs and limits and nodes come and go."""
    cluster = draw(clusters())
    types, told = tuple(cluster.gpu_types), []
    for step in range(draw(st.integers(1, 4))):
        over = [job for job in cluster.wants if draw(st.integers(0, 3)) == 0]
        now = {job: want for job, want in cluster.wants.items() if job not in over}
        for n in range(draw(st.integers(0, 5))):
            now[f"{step}-{n}"] = draw(wants(types, float(draw(st.integers(0, 3)))))
        lost = [node.id for node in cluster.nodes if draw(st.integers(0, 5)) == 0]
        if draw(st.integers(0, 3)) == 0:
            room = draw(rooms(types))
            cluster = replace(cluster, max_nodes=room.max_nodes, cap=room.spend_left)
        cluster = replace(
            cluster,
            wants=now,
            held={job: held for job, held in cluster.held.items() if job in now},
            nodes=tuple(node for node in cluster.nodes if node.id not in lost),
            leaving=cluster.leaving if draw(st.booleans()) else (),
        )
        told.append(replace(cluster))
        cluster.apply(cluster.fit())
    return told


def after(cluster: Cluster) -> tuple[Fitted, Cluster]:
    fitted = cluster.fit()
    then = replace(cluster)
    then.apply(fitted)
    return fitted, then


@many
@given(story=stories())
def test_the_room_is_never_left(story: list[Cluster]) -> None:
    for before in story:
        fitted, then = after(before)
        for gpu, most in before.max_nodes.items():
            assert sum(node.gpu == gpu for node in then.nodes) <= most, "once it is gone"
            new = sum(node.gpu == gpu for node in fitted.new_nodes)
            rented = sum(node.gpu == gpu for node in (*before.nodes, *before.leaving))
            assert new <= max(most - rented, 0), "what goes is still there"
        if before.cap is not None:
            assert replace(then, leaving=()).spend <= before.cap + 1e-9
            new_spend = then.spend - before.spend
            assert new_spend <= max(before.cap - before.spend, 0.0) + 1e-9


@many
@given(story=stories())
def test_every_allocation_is_real(story: list[Cluster]) -> None:
    for before in story:
        fitted, then = after(before)
        there = {node.id: node for node in then.nodes}
        used: Counter[int] = Counter()
        for job, allocation in fitted.allocations.items():
            want = before.wants[job]
            used.update(dict(allocation.nodes))
            assert all(there[node].gpu == allocation.gpu for node, _ in allocation.nodes)
            assert allocation.width >= min(want.min, want.share.width)
            if allocation.gpu == want.share.gpu:
                assert allocation.width <= want.share.width
            else:
                assert not want.types or allocation.gpu in want.types
            speeds = want.speeds(allocation.gpu)
            assert speeds is None or speeds[allocation.width] > 0
        assert all(count <= there[node].gpus for node, count in used.items())
        assert [node.id for node in fitted.new_nodes] == list(
            range(before.next_node, before.next_node + len(fitted.new_nodes))
        )


@many
@given(story=stories())
def test_deciding_again_changes_nothing(story: list[Cluster]) -> None:
    for before in story:
        fitted, then = after(before)
        again = then.fit()
        assert again.allocations == fitted.allocations
        assert again.new_nodes == ()
        assert again.give_back == ()
        assert again.short.keys() == fitted.short.keys()


@many
@given(story=stories())
def test_nobody_waits_or_is_narrower_for_room_that_is_free(story: list[Cluster]) -> None:
    for before in story:
        fitted, then = after(before)
        for job, want in before.wants.items():
            held = fitted.allocations.get(job)
            if held is None:
                for gpu in then.gpu_types:
                    rungs = want.rungs(gpu)
                    assert not rungs or then.free(gpu) < rungs[-1]
            elif held.gpu == want.share.gpu and held.width < want.share.width:
                wider = min(rung for rung in want.rungs(held.gpu) if rung > held.width)
                assert then.free(held.gpu) < wider - held.width


@many
@given(story=stories())
def test_who_is_short_is_told_and_nobody_else(story: list[Cluster]) -> None:
    for before in story:
        fitted = before.fit()
        full = {
            job
            for job, held in fitted.allocations.items()
            if (held.gpu, held.width)
            == (before.wants[job].share.gpu, before.wants[job].share.width)
        }
        assert set(fitted.short) == set(before.wants) - full


@many
@given(story=stories())
def test_with_room_for_everything_it_is_the_simulators_placement(story: list[Cluster]) -> None:
    for before in story:
        free = replace(before, max_nodes={}, cap=None)
        fitted = free.fit()
        shares = {job: want.share for job, want in free.wants.items()}
        placed = place(
            shares,
            free.held,
            free.nodes,
            free.gpu_types,
            next_node=free.next_node,
            elastic=True,
        )
        assert fitted.allocations == placed.allocations
        assert {*fitted.new_nodes} == {*placed.nodes} - {*free.nodes}
        assert fitted.short == {}
        assert fitted.give_back == ()


@many
@given(story=stories())
def test_jobs_that_leave_never_cost_a_running_job_its_gpus(story: list[Cluster]) -> None:
    """Unless somebody waits, who can be seated now."""
    for before in story:
        fitted, then = after(before)
        gone = [job for n, job in enumerate(then.wants) if n % 2 or job not in then.held]
        then.wants = {job: want for job, want in then.wants.items() if job not in gone}
        then.held = {job: held for job, held in then.held.items() if job not in gone}
        later = then.fit().allocations
        for job, held in then.held.items():
            if job not in fitted.short:
                assert later[job] == held
            elif later[job].gpu == held.gpu:
                assert later[job].width >= held.width
