"""Records to rows and back, exactly: columns for what is looked for, JSON text for the rest.

Fields that are plain values go into the JSON by their own names: a new one with a default needs no
migration, since records written before it then have the default.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from boa.model.access import AuditEntry, TokenRecord
from boa.model.cluster import Allocation, JobId, NodeId, Share
from boa.model.events import KINDS
from boa.model.held import Floats
from boa.model.job import After, GpuLimits, JobRecord, JobSpec, Run, SecretUse
from boa.model.job_spec import amended
from boa.model.notices import Notice
from boa.model.placements import FailedPlacement, Placement
from boa.model.plan import Variant
from boa.model.records import Cell, CellKey, ClassRecord, Event, Hold, NodeRecord, Point, Sample
from boa.model.sampled import Sampled

Row: TypeAlias = dict[str, Any]
Stored: TypeAlias = Mapping[str, Any]

_encoder = json.JSONEncoder(separators=(",", ":"))
to_json = _encoder.encode
"""ASCII only, so that it holds text which a database would refuse (a NUL, half a surrogate)."""


def to_text(value: str) -> str:
    """For a column: as it is, but for backslashes and what a database would refuse."""
    escaped = value.replace("\\", "\\\\").replace("\0", "\\x00")
    return escaped.encode("utf-8", "backslashreplace").decode("utf-8")


def from_text(column: str) -> str:
    if "\\" not in column:
        return column
    return column.encode("latin-1", "backslashreplace").decode("unicode_escape")


def job_number(job: JobId) -> int:
    number = int(job)
    if str(number) != job:
        raise ValueError(f"{job!r} is no decimal number, which ids of jobs are")
    return number


def _plain(record: type, other: Collection[str]) -> Callable[[Any], Row]:
    """Takes all fields of a record but these."""
    names = [field.name for field in fields(record) if field.name not in other]
    return lambda value: {name: getattr(value, name) for name in names}


_plain_job = _plain(
    JobRecord, ["id", "spec", "serial", "submitted_at", "share", "allocation", "run"]
)
_plain_token = _plain(TokenRecord, [])
_plain_audit = _plain(AuditEntry, ["at", "who"])
_plain_notice = _plain(Notice, ["number", "target"])
_plain_spec = _plain(JobSpec, ["gpus", "env", "secrets"])
_plain_limits = _plain(GpuLimits, [])
_plain_run = _plain(Run, ["allocation", "slots"])
_plain_node = _plain(NodeRecord, ["id"])
_plain_event = _plain(Event, ["job"])
_plain_sample = _plain(Sample, ["at", "wanted"])
_POINT = tuple(field.name for field in fields(Point) if field.name not in ("job", "at"))
"""Fields of a point in this order, without names, since there are millions of them: new ones only
at the end."""
_values_of_point = attrgetter(*_POINT)


def job_row(job: JobRecord) -> Row:
    record = _plain_job(job)
    record["share"] = _share_document(job.share)
    record["allocation"] = _allocation_document(job.allocation)
    record["run"] = _run_document(job.run)
    return {
        "number": job_number(job.id),
        "job_class": to_text(job.job_class),
        "serial": job.serial,
        "submitted_at": job.submitted_at,
        "spec": to_json(_spec_document(job.spec)),
        "ended": job.ended,
        "record": to_json(record),
    }


def job_of(row: Stored) -> JobRecord:
    record = json.loads(row["record"])
    for name, decode in _PARTS_OF_A_JOB.items():
        if record.get(name) is not None:  # one that is newer than the record is not there
            record[name] = decode(record[name])
    spec = _spec(json.loads(row["spec"]))
    return JobRecord(
        id=str(row["number"]),
        spec=amended(spec, record["amended"]) if record.get("amended") else spec,
        serial=row["serial"],
        submitted_at=row["submitted_at"],
        **record,
    )


def _spec_document(spec: JobSpec) -> Row:
    document = {**_plain_spec(spec), "gpus": _plain_limits(spec.gpus), "env": dict(spec.env)}
    if spec.secrets:  # none where an earlier version wrote it
        document["secrets"] = [[use.name, use.env] for use in spec.secrets]
    return document


def _spec(document: Row) -> JobSpec:
    limits = document["gpus"]
    limits["types"] = tuple(limits["types"])
    document["secrets"] = tuple(SecretUse(*use) for use in document.get("secrets", ()))
    document["after"] = tuple(After(*one) for one in document.get("after", ()))
    if document.get("preload") is not None:
        document["preload"] = tuple(document["preload"])
    return JobSpec(**{**document, "run": tuple(document["run"]), "gpus": GpuLimits(**limits)})


def _share_document(share: Share | None) -> Row | None:
    if share is None:
        return None
    document: Row = {"gpu": share.gpu, "width": share.width, "until": share.until}
    if isinstance(share.note, Variant):
        document["variant"] = {
            "share": share.note.share,
            "gpu_types": _counted(share.note.gpu_types),
            "widths": _counted(share.note.widths),
        }
    else:
        document["note"] = share.note
    return document


def _share(document: Row) -> Share:
    note = _variant(document["variant"]) if "variant" in document else document["note"]
    return Share(document["gpu"], document["width"], document["until"], note)


def _variant(document: Row) -> Variant:
    gpu_types, widths = _repeated(document["gpu_types"]), _repeated(document["widths"])
    return Variant(document["share"], gpu_types, widths)


def _counted(values: Iterable[Any]) -> list[tuple[int, Any]]:
    """Hundreds of epochs have a few widths between them."""
    return [(len(list(same)), value) for value, same in groupby(values)]


def _repeated(counted: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    return tuple(chain.from_iterable(repeat(value, times) for times, value in counted))


def _allocation_document(allocation: Allocation | None) -> Row | None:
    return None if allocation is None else {"gpu": allocation.gpu, "nodes": allocation.nodes}


def _allocation(document: Row) -> Allocation:
    return Allocation(document["gpu"], tuple((node, count) for node, count in document["nodes"]))


def _run_document(run: Run | None) -> Row | None:
    if run is None:
        return None
    record = _plain_run(run)
    record["allocation"] = _allocation_document(run.allocation)
    record["slots"] = list(run.slots.items())
    return record


def _run(document: Row) -> Run:
    slots = {node: tuple(gpus) for node, gpus in document["slots"]}
    return Run(**{**document, "allocation": _allocation(document["allocation"]), "slots": slots})


_PARTS_OF_A_JOB: Mapping[str, Callable[[Any], Any]] = {
    "share": _share,
    "allocation": _allocation,
    "run": _run,
    "worked": lambda rows: tuple(Placement(*row) for row in rows),
    "unfit": lambda rows: tuple(map(FailedPlacement.read, rows)),
    "awaits": lambda rows: tuple(After(*row) for row in rows),
    "told": tuple,
    "failed_at": tuple,
    "stops": lambda months: {month: tuple(stops) for month, stops in months.items()},
}


def node_row(node: NodeRecord) -> Row:
    """Times that are not known yet lie in the far future, so that one comparison finds a node."""
    return {
        "id": node.id,
        "gone": node.state == "gone",
        "charged_from": math.inf if node.billed_from is None else node.billed_from,
        "charged_until": math.inf if node.gone_at is None else node.gone_at,
        "record": to_json(_plain_node(node)),
    }


def node_of(row: Stored) -> NodeRecord:
    return _node(row["id"], json.loads(row["record"]))


def _node(id: NodeId, record: Row) -> NodeRecord:
    """An older record has no changes: what its price changed to is in the average that it has."""
    changes = record.pop("changes", ())
    return NodeRecord(id=id, changes=tuple([(at, price) for at, price in changes]), **record)


def nodes_of(batches: Iterable[Sequence[tuple[Any, ...]]]) -> list[NodeRecord]:
    """From the columns of `queries.nodes_between`."""
    return [
        _node(id, record)
        for rows in batches
        for (id, _), record in zip(rows, _read_together(rows), strict=True)
    ]


def _read_together(rows: Sequence[tuple[Any, str]]) -> list[dict[str, Any]]:
    """The second columns of rows, each a JSON object."""
    found: list[dict[str, Any]] = json.loads(f"[{','.join([text for _, text in rows])}]")
    return found


def hold_row(hold: Hold) -> Row:
    return {
        "job": job_number(hold.job),
        "node": hold.node,
        "since": hold.since,
        "until": math.inf if hold.until is None else hold.until,
        "job_class": to_text(hold.stream),
        "gpus": hold.gpus,
        "price": hold.price,
    }


def hold_of(row: Stored) -> Hold:
    return Hold(
        job=str(row["job"]),
        stream=from_text(row["job_class"]),
        node=row["node"],
        gpus=row["gpus"],
        price=row["price"],
        since=row["since"],
        until=None if row["until"] == math.inf else row["until"],
    )


def cell_row(cell: Cell) -> Row:
    return {
        "job_class": to_text(cell.key.job_class),
        "gpu": to_text(cell.key.gpu),
        "across": cell.key.across,
        "width": cell.key.width,
        "epoch": cell.key.epoch,
        "seconds": cell.seconds,
        "units": cell.units,
        "reports": cell.reports,
    }


def cell_of(row: Stored) -> Cell:
    key = CellKey(
        from_text(row["job_class"]),
        from_text(row["gpu"]),
        row["across"],
        row["width"],
        row["epoch"],
    )
    return Cell(key, row["seconds"], row["units"], row["reports"])


def class_row(record: ClassRecord) -> Row:
    return {"name": to_text(record.name), "document": to_json(dict(record.document))}


def class_of(row: Stored) -> ClassRecord:
    return ClassRecord(name=from_text(row["name"]), document=json.loads(row["document"]))


def event_row(number: int, event: Event) -> Row:
    return {
        "number": number,
        "job": None if event.job is None else job_number(event.job),
        "record": to_json({**_plain_event(event), "data": dict(event.data)}),
    }


def event_of(row: Stored) -> Event:
    """The stored event; one of a kind that only another version knows keeps that one's words."""
    job = None if row["job"] is None else str(row["job"])
    record = json.loads(row["record"])
    kind = record["kind"] if record["kind"] in KINDS else "other"
    return Event(**{**record, "job": job, "kind": kind})


def meta_row(key: str, value: Any) -> Row:
    return {"key": to_text(key), "value": to_json(value)}


def meta_of(row: Stored) -> tuple[str, Any]:
    return from_text(row["key"]), json.loads(row["value"])


def token_row(token: TokenRecord) -> Row:
    return {"name": to_text(token.name), "record": to_json(_plain_token(token))}


def token_of(row: Stored) -> TokenRecord:
    return TokenRecord(**json.loads(row["record"]))


def audit_row(number: int, entry: AuditEntry) -> Row:
    return {
        "number": number,
        "at": entry.at,
        "who": to_text(entry.who),
        "record": to_json(_plain_audit(entry)),
    }


def audit_of(row: Stored) -> AuditEntry:
    return AuditEntry(at=row["at"], who=from_text(row["who"]), **json.loads(row["record"]))


def notice_row(notice: Notice) -> Row:
    return {
        "number": notice.number,
        "target": to_text(notice.target),
        "waiting": notice.state == "waiting",
        "record": to_json(_plain_notice(notice)),
    }


def notice_of(row: Stored) -> Notice:
    record = json.loads(row["record"])
    return Notice(number=row["number"], target=from_text(row["target"]), **record)


def sample_row(sample: Sample) -> Row:
    return {
        "at": sample.at,
        "record": to_json({**_plain_sample(sample), "wanted": dict(sample.wanted)}),
    }


def sample_of(row: Stored) -> Sample:
    return Sample(at=row["at"], **json.loads(row["record"]))


def sampled_of(batches: Iterable[Sequence[tuple[Any, ...]]]) -> Sampled:
    """From the columns of a sample."""
    rows = [row for batch in batches for row in batch]
    records = _read_together(rows)
    names = sorted({gpu for record in records for gpu in record["wanted"]})

    def column(name: str) -> Floats:
        return np.array([record[name] for record in records], dtype=np.float64)

    return Sampled(
        at=np.array([at for at, _ in rows], dtype=np.float64),
        every_s=column("every_s"),
        budget=column("budget"),
        wanted={
            gpu: np.array([record["wanted"].get(gpu, 0) for record in records], dtype=np.float64)
            for gpu in names
        },
        active=column("active"),
        waiting=column("waiting"),
    )


def point_row(point: Point) -> Row:
    return {
        "job": job_number(point.job),
        "at": point.at,
        "record": to_json(_values_of_point(point)),
    }


def point_of(row: Stored) -> Point:
    values = dict(zip(_POINT, json.loads(row["record"]), strict=False))
    return Point(job=str(row["job"]), at=row["at"], **values)
