"""The sentence of every event: made from its kind and fields, here and nowhere else. Pure.

A sentence is made of parts. Those that name a job, a node or a time say so, so that whoever shows
them can link and round as they like without reading the words.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from boa.model.cluster import JobId, NodeId, NodeReason
from boa.model.events import (
    BudgetSet,
    ClockSet,
    Ended,
    EventKind,
    FailedFields,
    FailureCode,
    LossCode,
    NodeLeaving,
    NodeLost,
    NodeReleased,
    NodeRented,
    OfJob,
    OfNode,
    PlannedFields,
    Retry,
    Short,
    Shortage,
    Start,
    Submitted,
    TroubleFields,
    has_its_fields,
)
from boa.model.records import Event
from boa.scheduler.decide.wording import dollars, seconds
from boa.units import GpuName, Seconds, Usd

_NO_TIME_S = 0.05
_NO_GAP = 1e-4
_ONE_PROCESS = (
    "is one process (launcher single), which sees the GPUs of its first node only: where it is "
    "spread over several, the others are paid for nothing. gpus.max: 1, or launcher workers or "
    "torchrun"
)
_NOT_READY = "not ready after"
STOPPED = "stopped on request"
LOST: Mapping[LossCode, str] = {
    "taken_back": "the cloud took it back",
    "unlisted": "the cloud no longer lists it",
    "never_came": "it never came",
}


class Part(NamedTuple):
    """A piece of a sentence, and what it names."""

    text: str
    job: JobId | None = None
    node: NodeId | None = None
    seconds: Seconds | None = None


class _About(NamedTuple):
    kind: EventKind
    job: JobId | None
    node: NodeId | None


Words: TypeAlias = Iterator[str | Part]


def sentence(
    kind: EventKind, job: JobId | None, node: NodeId | None, data: Mapping[str, Any]
) -> str:
    """Text of an event with all fields of its kind."""
    return "".join(_text(part) for part in _WORDS[kind](_About(kind, job, node), data))


def parts(event: Event) -> list[Part]:
    """Parts of an event's text. One that was written by another version stays in one piece: what
    was said is not reworded."""
    if not has_its_fields(event.kind, event.data):
        return [Part(event.text)]
    about = _About(event.kind, event.job, event.node)
    try:
        found = _joined(_WORDS[event.kind](about, event.data))
    except (LookupError, TypeError, ValueError):  # a code or a value that only its writer knew
        return [Part(event.text)]
    same = "".join(part.text for part in found) == event.text
    return found if same else [Part(event.text)]


def _text(part: str | Part) -> str:
    return part if isinstance(part, str) else part.text


def _joined(words: Words) -> list[Part]:
    """Plain ones in a row as one."""
    found: list[Part] = []
    for part in words:
        if not isinstance(part, str):
            found.append(part)
        elif found and found[-1] == Part(found[-1].text):
            found[-1] = Part(found[-1].text + part)
        elif part:
            found.append(Part(part))
    return found


# What sentences are made of


def _job(about: _About) -> Part:
    return Part(f"job {about.job}", job=about.job)


def _named(about: _About, name: str) -> Words:
    yield _job(about)
    yield f" ({name})"


def _node(about: _About) -> Part:
    return Part(f"node {about.node}", node=about.node)


def _time(value: Seconds) -> Part:
    return Part(f"{value:.0f} s", seconds=value)


def _worded(value: Seconds) -> Part:
    return Part(seconds(value), seconds=value)


# Jobs


def _submitted(about: _About, data: Submitted) -> Words:
    yield from _named(about, data["name"])
    yield " was submitted"
    if data["name"] != data["job_class"]:
        yield f", of class {data['job_class']}"


def _stop(about: _About, data: OfJob) -> Words:
    yield from _named(about, data["name"])
    yield " was asked to stop"


def _ended(about: _About, data: Ended) -> Words:
    yield from _named(about, data["name"])
    yield f" {about.kind} after "
    yield _time(data["jct_s"])
    yield f" for ${data['cost_usd']:.2f}"


def _stopped(about: _About, data: Ended) -> Words:
    yield from _ended(about, data)
    yield f": {STOPPED}"


def _failed(about: _About, data: FailedFields) -> Words:
    yield from _ended(about, data)
    why = failure(data["why"], data["exit_code"], data.get("detail", ""))
    yield f": {given_up(why, data['failures'])}"


def failure(why: FailureCode, exit_code: int | None, detail: str) -> str:
    """Words for the failure of a run: the engine's own, where it has some."""
    if detail or why == "engine":
        return detail
    return "its processes were lost" if why == "processes_lost" else f"exit code {exit_code}"


def given_up(why: str, failures: int) -> str:
    """The same of a job that is not tried again."""
    return f"{why} {failures} times without progress" if failures > 1 else why


def next_try(why: str, wait_s: Seconds) -> str:
    """The same of a job that is."""
    return f"{why}; next try in {wait_s:.0f} s"


def _retry(about: _About, data: Retry) -> Words:
    yield from _named(about, data["name"])
    detail = data.get("detail", "")
    if data["why"] == "node_lost":
        yield f" lost a node ({detail}): it goes on elsewhere"
        return
    yield f" failed ({failure(data['why'], data['exit_code'], detail)}): tried again in "
    yield _time(data["wait_s"])
    yield f" ({data.get('failures', 1)} of at most {data.get('retries', 0)} times in a row)"


def _start(about: _About, data: Start) -> Words:
    yield from _named(about, data["name"])
    why = data.get("why")
    if why in ("widened", "squeezed", "moved"):
        yield from _changed(data)
        return
    yield f" → {data['width']}×{data['gpu_type']}: {_cause(data)}"
    if why in ("first", "epoch", "plan") and "planned_width" in data:
        yield f"; {_too_few(data)}"
    if why != "short" and "saves_s" in data:
        yield "; "
        yield from _bought(data["saves_s"], data.get("extra_usd", 0.0))


def _changed(data: Start) -> Words:
    """Other GPUs where whole nodes are paid for."""
    before, width = data.get("before_width", data["width"]), data["width"]
    yield f" → {width}×{data['gpu_type']}: "
    match data.get("why"):
        case "widened":
            yield f"{before} before; GPUs that are paid for and that nobody gains more by"
        case "squeezed":
            yield f"{before} before; squeezed"
            if "for_job" in data:
                yield " for "
                yield Part(f"job {data['for_job']}", job=data["for_job"])
                if data.get("wait_s"):
                    yield ", which would else wait "
                    yield _time(data.get("wait_s", 0.0))
                    yield " for a node"
        case _:
            yield f"{before}×{data.get('before_gpu_type', '')} before"
    if "saves_s" in data:
        saves = data["saves_s"]
        yield "; saves " if saves >= 0 else "; costs it "
        yield _worded(abs(saves))
        if data.get("pause_s"):
            yield ", a pause of "
            yield _worded(data.get("pause_s", 0.0))
            yield " included"


def _cause(data: Start) -> str:
    match data.get("why"):
        case "first":
            return "first start"
        case "epoch":
            return f"epoch {data.get('for_epoch', data['epoch']) + 1} begins"
        case "plan":
            return "a new plan"
        case "short":
            return _too_few(data)
        case "room":
            of = f" ({_planned_gpus(data)})" if "planned_width" in data else ""
            return f"GPUs are free again{of}"
        case "round":
            return "GPUs are shared out anew"
        case "nodes":
            return "moves to other nodes"
    if data["epochs"] > 1:
        return f"goes on with epoch {min(data['epoch'] + 1, data['epochs'])} of {data['epochs']}"
    return "goes on from its last checkpoint"


def _too_few(data: Start) -> str:
    return f"GPUs are short ({_planned_gpus(data)})"


def _planned_gpus(data: Start) -> str:
    if "planned_width" not in data:
        return "more were planned"
    gpu = data.get("planned_gpu_type", data["gpu_type"])
    same = gpu == data["gpu_type"]
    return f"{data['planned_width']} planned" if same else f"{data['planned_width']}×{gpu} planned"


def _bought(saves: Seconds, extra: Usd) -> Words:
    if saves > _NO_TIME_S:
        yield "saves "
        yield _worded(saves)
        yield f" {'for' if extra > 0 else 'and'} {dollars(abs(extra))}"
        return
    yield "cheaper: " if extra < 0 else ""
    if saves < -_NO_TIME_S:
        yield _worded(-saves)
        yield " later"
    else:
        yield "as fast"
    yield f", saves {dollars(-extra)}" if extra < 0 else f", for {dollars(extra)} more"


# Nodes


def _node_rented(about: _About, data: NodeRented) -> Words:
    yield "renting "
    yield _node(about)
    yield f": {data['gpus']}×{data['gpu_type']} at ${data['price_per_hour']:g}/h"
    if "saves_s" not in data:
        return
    waiting = data.get("waiting", 0)
    yield "; "
    if waiting:
        yield f"{waiting} job{'s wait' if waiting > 1 else ' waits'}, and "
    yield "jobs finish "
    yield _worded(data["saves_s"])
    yield " sooner by "
    yield _time(data.get("over_s", 0.0))
    yield " of it"
    if "worth_per_hour" in data:
        yield f": worth ${data['worth_per_hour']:.2f}/h"


def rent_fields(why: NodeReason | None) -> dict[str, Any]:
    """Reason of a rented node as fields of its event."""
    if why is None or why.saves_s is None:
        return {}
    worth = {} if why.worth_per_hour is None else {"worth_per_hour": why.worth_per_hour}
    return {"saves_s": why.saves_s, "over_s": why.over_s, "waiting": why.waiting, **worth}


def release_fields(why: NodeReason | None) -> dict[str, Any]:
    """Reason of a node given back as fields of its event."""
    if why is None:
        return {}
    found: dict[str, Any] = {"price_per_hour": why.price_per_hour}
    if why.worth_per_hour is not None:
        found["worth_per_hour"] = why.worth_per_hour
    if why.moved:
        found |= {"moved": list(why.moved), "pause_s": why.pause_s}
    return found


def _node_ready(about: _About, data: OfNode) -> Words:
    yield _node(about)
    yield f" is ready ({data['gpu_type']})"


def _node_released(about: _About, data: NodeReleased) -> Words:
    yield "giving "
    yield _node(about)
    yield f" back ({data['gpu_type']})"
    if data["why"] == "not_ready":
        yield f": {_NOT_READY} "
        yield _time(data.get("after_s", 0.0))
    if "worth_per_hour" in data:
        worth, price = data["worth_per_hour"], data.get("price_per_hour", 0.0)
        yield f": it was worth {dollars(max(worth, 0.0))}/h of the {dollars(price)}/h that it costs"
    moved = data.get("moved", [])
    for n, job in enumerate(moved):
        yield "; " if n == 0 else ", "
        yield Part(f"job {job}", job=job)
    if moved:
        yield f" move{'s' if len(moved) == 1 else ''} (a pause of "
        yield _time(data.get("pause_s", 0.0))
        yield ")"


def not_ready(after_s: Seconds) -> str:
    """Why a node was given back that did not come up."""
    return f"{_NOT_READY} {after_s:.0f} s"


def _node_leaving(about: _About, data: NodeLeaving) -> Words:
    yield "the cloud takes "
    yield _node(about)
    yield f" ({data['gpu_type']}) away in "
    yield _time(data["in_s"])
    yield ": jobs move"


def _node_gone(about: _About, data: OfNode) -> Words:
    yield _node(about)
    yield f" ({data['gpu_type']}) is gone"


def _node_lost(about: _About, data: NodeLost) -> Words:
    yield _node(about)
    yield f" ({data['gpu_type']}) is lost: {LOST[data['why']]}"


def _orphan(about: _About, data: OfNode) -> Words:
    yield f"the cloud has a node that nobody wants ({data['gpu_type']}): giving it back"


# Too few GPUs


def _shortage(about: _About, data: Short) -> Words:
    if data["why"] == "refused":
        yield f"no {data['gpu_type']} node to be had ({data.get('detail', '')}); asking again in "
        yield _time(data.get("again_s", 0.0))
        return
    yield from _named(about, data.get("name", ""))
    given = data.get("given_gpu_type"), data.get("given_width")
    found = Shortage(
        gpu_type=data["gpu_type"],
        width=data.get("width", 0),
        given=None if given[0] is None or given[1] is None else (given[0], given[1]),
        why=data["why"],
        most_nodes=data.get("most_nodes"),
        detail=data.get("detail", ""),
    )
    yield f": {shortage(found)}"


def shortage(found: Shortage) -> str:
    """Words for the GPUs a job has instead of those wanted, and why."""
    return f"{_instead(found)}: {_limit(found)}"


def shortage_fields(found: Shortage) -> Short:
    """The same as fields of an event, but for the job's name."""
    data: Short = {"why": found.why, "gpu_type": found.gpu_type, "width": found.width}
    if found.given is not None:
        data["given_gpu_type"], data["given_width"] = found.given
    if found.most_nodes is not None:
        data["most_nodes"] = found.most_nodes
    if found.detail:
        data["detail"] = found.detail
    return data


def _instead(found: Shortage) -> str:
    wanted = f"{found.width}×{found.gpu_type}"
    if found.given is None:
        return f"waits for {wanted}"
    gpu, width = found.given
    if gpu == found.gpu_type:
        return f"runs on {width} of {wanted}"
    return f"runs on {width}×{gpu} instead of {wanted}"


def _limit(found: Shortage) -> str:
    gpu: GpuName = found.gpu_type
    match found.why:
        case "no_such_type":
            return f"{gpu} cannot be rented here"
        case "spend_cap":
            return f"another {gpu} node would cost more than the cap on the spend leaves"
    nodes = f"{found.most_nodes} node{'s' if found.most_nodes != 1 else ''}"
    said = f" ({found.detail})" if found.detail else ""
    return f"no more than {nodes} of {gpu} can be had now{said}"


# Money, plans, the service itself


def _planned(about: _About, data: PlannedFields) -> Words:
    best = "proven best" if data["gap"] < _NO_GAP else f"at most {data['gap']:.2%} above the best"
    jct_s, too_small = data["average_jct_s"], data["too_small_per_hour"]
    yield f"plan {data['number']}: jobs take "
    yield Part(f"{jct_s:,.0f} s", seconds=jct_s)
    yield f" on average, for ${data['spend_per_hour']:.4g}/h "
    yield f"({best}; solved in {data['wall_s'] * 1000:.0f} ms)"
    if too_small is not None:
        yield f"; the budget cannot keep up: the cheapest plan needs ${too_small:.4g}/h"


def _budget(about: _About, data: BudgetSet) -> Words:
    said, budget = [], data["budget"]
    if "before" in data:
        said.append(f"the budget is ${budget:g}/h from now on")
        if data["before"] != budget:
            said.append(f"it was ${data['before']:g}/h")
    if "max_spend" in data:
        cap = data["max_spend"]
        said.append("no hard cap" if cap is None else f"never more than ${cap:g}/h at a time")
    yield "; ".join(said) or f"the budget is ${budget:g}/h"


def _clock(about: _About, data: ClockSet) -> Words:
    signed = f"{data['by_s']:+.0f} s"
    yield f"the machine's clock was set by {signed[0]}"
    yield Part(signed[1:], seconds=abs(data["by_s"]))
    yield "; the service's own time goes on"


def _trouble(about: _About, data: TroubleFields) -> Words:
    match data["why"]:
        case "no_plan":
            yield f"no plan could be made: {data.get('detail', '')}"
        case "one_process":
            yield _job(about)
            yield f" {_ONE_PROCESS}"
        case "exit_code":
            yield from _named(about, data.get("name", ""))
            yield f" ended with exit code {data.get('exit_code')} when told to stop; "
            yield "it goes on from its last checkpoint"
        case who:
            yield f"trouble with the {who}: {data.get('detail', '')}"


def _other(about: _About, data: Mapping[str, Any]) -> Words:
    yield "something that this version has no words for"


_WORDS: Mapping[EventKind, Callable[[_About, Any], Words]] = {
    "submitted": _submitted,
    "started": _start,
    "rescaled": _start,
    "restarted": _start,
    "stop": _stop,
    "stopped": _stopped,
    "succeeded": _ended,
    "failed": _failed,
    "retry": _retry,
    "node_rented": _node_rented,
    "node_ready": _node_ready,
    "node_released": _node_released,
    "node_leaving": _node_leaving,
    "node_gone": _node_gone,
    "node_lost": _node_lost,
    "orphan": _orphan,
    "shortage": _shortage,
    "planned": _planned,
    "budget": _budget,
    "clock": _clock,
    "trouble": _trouble,
    "other": _other,
}
