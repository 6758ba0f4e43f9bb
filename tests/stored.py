"""Records of all kinds that a store keeps: one of each by hand, and random ones."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from boa.model.changes import Changes
from boa.model.cluster import Allocation, Share
from boa.model.events import KINDS
from boa.model.job import After, GpuLimits, JobRecord, JobSpec, Run, SecretUse
from boa.model.job_spec import amended
from boa.model.plan import Variant
from boa.model.records import Cell, CellKey, ClassRecord, Event, Hold, NodeRecord, Point, Sample

WIDE = Variant(0.25, ("T4",) * 300 + ("A100",) * 22, (2.0,) * 100 + (4.0,) * 222)


def spec(job_class: str = "resnet18", **fields: Any) -> JobSpec:
    return JobSpec(job_class=job_class, run=("sh", "-c", "train"), **fields)


def job(number: int, **fields: Any) -> JobRecord:
    fields = {"spec": spec(), "serial": number - 1, "submitted_at": 100.0 * number, **fields}
    return JobRecord(id=str(number), **fields)


def running(number: int, **fields: Any) -> JobRecord:
    allocation = Allocation("T4", ((7, 2), (9, 1)))
    run = Run(
        attempt=3,
        allocation=allocation,
        slots={7: (0, 3), 9: (1,)},
        state="running",
        requested_at=120.5,
        decided_at=120.0,
        started_at=121.25,
    )
    share = Share("T4", 3, 100, WIDE)
    return job(
        number, state="running", share=share, allocation=allocation, run=run, attempts=3, **fields
    )


def node(number: int, **fields: Any) -> NodeRecord:
    fields = {"gpu": "T4", "gpus": 4, "price": 1.088, "requested_at": 10.0, **fields}
    return NodeRecord(id=number, token=f"boa-{number}", **fields)


def hold(job_number: int, node_number: int, since: float, until: float | None = None) -> Hold:
    return Hold(
        job=str(job_number),
        stream="resnet18",
        node=node_number,
        gpus=2,
        price=1.088,
        since=since,
        until=until,
    )


def event(text: str, **fields: Any) -> Event:
    return Event(at=5.0, kind="submitted", text=text, **fields)


def sample(at: float, **fields: Any) -> Sample:
    given = {"budget": 10.0, "effective": 9.0, "wanted": {"T4": 4}, "active": 3, "waiting": 1}
    return Sample(at=at, **{"every_s": 60.0, **given, **fields})


def point(job_number: int, at: float, **fields: Any) -> Point:
    given = {"attempt": 1, "epoch": 0, "progress": 1.5, "units": 1.5, "uptime_s": 7.0}
    return Point(job=str(job_number), at=at, **{**given, **fields})


def changes(
    *,
    jobs: tuple[JobRecord, ...] = (),
    nodes: tuple[NodeRecord, ...] = (),
    holds: tuple[Hold, ...] = (),
    points: tuple[Point, ...] = (),
    **others: Any,
) -> Changes:
    return Changes(
        points={point.job: point for point in points},
        jobs={job.id: job for job in jobs},
        nodes={node.id: node for node in nodes},
        holds={(hold.job, hold.node, hold.since): hold for hold in holds},
        **others,
    )


# Random ones

numbers = st.integers(1, 12)
counts = st.integers(0, 2**40)
amounts = st.floats(allow_nan=False, allow_infinity=False)
times = st.floats(0, 4e9)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "resnet18", "a\\b", "\\x00", "nul \0 inside", "half \udc80", "naïve ü 😀", "'; DROP TABLE"]
)
names = st.sampled_from(["resnet18", "bert", "a\\b\0c ü"])
gpus = st.sampled_from(["T4", "V100", "A100"])
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | amounts | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
documents = st.dictionaries(texts, json_values, max_size=3)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def variants(draw: st.DrawFn) -> Variant:
    epochs = draw(st.lists(st.tuples(gpus, st.floats(0.5, 64)), max_size=6))
    stretched = [epoch for epoch in epochs for _ in range(draw(st.integers(1, 40)))]
    return Variant(
        draw(st.floats(0, 1)),
        tuple(gpu for gpu, _ in stretched),
        tuple(width for _, width in stretched),
    )


limits = st.builds(GpuLimits, min=counts, max=counts, types=st.lists(gpus, max_size=3).map(tuple))
specs = st.builds(
    JobSpec,
    job_class=names,
    run=st.lists(texts, max_size=3).map(tuple),
    name=texts,
    env=st.dictionaries(texts, texts, max_size=2),
    secrets=st.lists(st.builds(SecretUse, texts, texts), max_size=2).map(tuple),
    workdir=texts,
    gpus=limits,
    launcher=st.sampled_from(["workers", "torchrun", "single"]),
    epochs=counts,
    total_work=maybe(amounts),
    checkpoint_dir=texts,
    grace_s=amounts,
    retries=counts,
    weight=amounts,
    after=st.lists(st.builds(After, texts, st.sampled_from(["success", "end"]))).map(tuple),
    max_cost=maybe(amounts),
    key=texts,
)
allocations = st.builds(
    Allocation, gpus, st.lists(st.tuples(counts, counts), max_size=3).map(tuple)
)
runs = st.builds(
    Run,
    attempt=counts,
    allocation=allocations,
    slots=st.dictionaries(counts, st.lists(counts, max_size=3).map(tuple), max_size=3),
    state=st.sampled_from(["requested", "running", "stopping"]),
    requested_at=times,
    decided_at=times,
    started_at=maybe(times),
    reported_at=maybe(times),
    rescale=st.dictionaries(texts, amounts, max_size=2),
    stopping_at=maybe(times),
)
shares = st.builds(
    Share, gpus, counts, maybe(counts), st.one_of(st.none(), variants(), json_values)
)
states = ["waiting", "starting", "running", "rescaling", "succeeded", "failed", "stopped"]
jobs = st.builds(
    JobRecord,
    id=numbers.map(str),
    spec=specs,
    serial=counts,
    state=st.sampled_from(states),
    submitted_at=times,
    started_at=maybe(times),
    ended_at=maybe(times),
    epoch=counts,
    progress=amounts,
    loss=maybe(amounts),
    step=maybe(st.integers()),
    metrics=st.dictionaries(texts, amounts, max_size=2),
    share=maybe(shares),
    allocation=maybe(allocations),
    run=maybe(runs),
    why=documents,
    moved_at=maybe(times),
    attempts=counts,
    rescalings=counts,
    restarts=counts,
    failures=counts,
    retry_at=maybe(times),
    stop_requested=st.booleans(),
    paused=st.booleans(),
    awaits=st.lists(st.builds(After, texts, st.sampled_from(["success", "end"]))).map(tuple),
    told=st.lists(texts, max_size=2).map(tuple),
    amended=st.sampled_from([{}, {"weight": 2.5, "gpus": {"min": 1, "max": 3, "types": ["T4"]}}]),
    deadline=maybe(times),
    drawn=st.dictionaries(texts, texts, max_size=2),
    exit_code=maybe(st.integers(-64, 255)),
    reason=texts,
    cost_usd=amounts,
    held_gpu_s=amounts,
).map(lambda job: replace(job, spec=amended(job.spec, job.amended)))
nodes = st.builds(
    NodeRecord,
    id=numbers,
    token=texts,
    gpu=gpus,
    gpus=counts,
    price=amounts,
    state=st.sampled_from(["requested", "ready", "releasing", "gone"]),
    requested_at=times,
    billed_from=maybe(times),
    ready_at=maybe(times),
    released_at=maybe(times),
    gone_at=maybe(times),
    empty_since=maybe(times),
    address=texts,
    reason=texts,
)
holds = st.builds(
    Hold,
    job=numbers.map(str),
    stream=names,
    node=numbers,
    gpus=counts,
    price=amounts,
    since=times,
    until=maybe(times),
)
cells = st.builds(
    Cell,
    st.builds(CellKey, names, gpus, st.booleans(), numbers, numbers),
    amounts,
    amounts,
    counts,
)
class_records = st.builds(ClassRecord, name=names, document=documents)
events = st.builds(
    Event,
    at=times,
    kind=st.sampled_from(KINDS),
    text=texts,
    job=maybe(numbers.map(str)),
    node=maybe(numbers),
    data=documents,
)

samples = st.builds(
    Sample,
    at=times,
    every_s=amounts,
    budget=amounts,
    effective=amounts,
    wanted=st.dictionaries(gpus | texts, counts, max_size=2),
    active=counts,
    waiting=counts,
)
points = st.builds(
    Point,
    job=numbers.map(str),
    at=times,
    attempt=counts,
    epoch=counts,
    progress=amounts,
    units=amounts,
    uptime_s=amounts,
    step=maybe(st.integers()),
    loss=maybe(amounts),
    batch_size=maybe(amounts),
    turns=counts,
)


@st.composite
def any_changes(draw: st.DrawFn) -> Changes:
    return changes(
        jobs=tuple(draw(st.lists(jobs, max_size=3))),
        nodes=tuple(draw(st.lists(nodes, max_size=3))),
        holds=tuple(draw(st.lists(holds, max_size=3))),
        cells=draw(st.lists(cells, max_size=3)),
        classes=draw(st.lists(class_records, max_size=2)),
        events=draw(st.lists(events, max_size=4)),
        meta=draw(st.dictionaries(texts, json_values, max_size=2)),
        samples=draw(st.lists(samples, max_size=2, unique_by=lambda one: one.at)),
        points=tuple(draw(st.lists(points, max_size=3))),
    )
