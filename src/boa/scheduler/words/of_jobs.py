"""Sentences about jobs: how they start, change, end and fail."""

from boa.model.events import Ended, FailedFields, FailureCode, Retry, Start, Submitted
from boa.model.placements import Placement
from boa.scheduler.words.amounts import dollars, seconds
from boa.scheduler.words.pieces import About, Part, Words, named, time, worded
from boa.units import Seconds, Usd

_NO_TIME_S = 0.05
FROM_KEPT = "from its last checkpoint if it has one"
"""Whether it has, the job alone knows."""


def submitted(about: About, data: Submitted) -> Words:
    yield from named(about, data["name"])
    yield " was submitted"
    if data["name"] != data["job_class"]:
        yield f", of class {data['job_class']}"


def ended(about: About, data: Ended) -> Words:
    yield from named(about, data["name"])
    yield f" {about.kind}: "
    if "on_gpus_s" in data:  # older events have none
        yield time(data["on_gpus_s"])
        yield " on GPUs, "
    yield time(data["jct_s"])
    yield f" since submission, {dollars(data['cost_usd'])}"


def failed(about: About, data: FailedFields) -> Words:
    yield from ended(about, data)
    why = failure(data["why"], data["exit_code"], data.get("detail", ""))
    yield f"; {given_up(failed_by(why, data.get('said', '')), data['failures'])}"


def failure(why: FailureCode, exit_code: int | None, detail: str) -> str:
    """Words for the failure of a run: the engine's own, where it has some."""
    if detail or why == "engine":
        return detail
    return "its processes were lost" if why == "processes_lost" else f"exit code {exit_code}"


def failed_by(why: str, said: str) -> str:
    """The same with the run's own last words, where it had some."""
    return f"{why}: {said}" if said else why


def placed(place: Placement) -> str:
    return f"{place.width}×{place.gpu}{' across nodes' if place.across else ''}"


def goes_back(failed: Placement, why: str, back: Placement) -> str:
    """Words for a job that failed for where it was."""
    return f"{placed(failed)} failed ({why}): goes back to {back.width}×{back.gpu}"


def asked_again(said: str) -> str:
    """Words for a job that asked for another start."""
    return f"is started again, as it asked{f' ({said})' if said else ''}"


def given_up(why: str, failures: int) -> str:
    """The same of a job that is not tried again."""
    return f"{why}, {failures} times without progress" if failures > 1 else why


def other_unit(said: float, counted: float, who: str) -> str:
    """Words for a `total_work` that contradicts what the job itself counts."""
    factor = max(said, counted) / min(said, counted)
    return (
        f"total_work is {said:,.6g}, but {who} {counted:,.6g} in all ({factor:.2g}× apart): they "
        f"seem to be in different units. BOA believes the second. Set total_work to "
        f"{counted:,.6g}, or leave it out"
    )


def not_over(hindrance: str) -> str:
    """The same of a job that cannot be tried yet: something of its run is still there."""
    return f"waits until its run is over: {hindrance}"


def awaits(what: str) -> str:
    """The same of a job whose run cannot begin yet."""
    return f"waits for its GPUs: {what}"


def next_try(why: str, wait_s: Seconds) -> str:
    """The same of a job that is."""
    return f"{why}; next try in {seconds(wait_s)}"


def retry(about: About, data: Retry) -> Words:
    yield from named(about, data["name"])
    detail = data.get("detail", "")
    if data["why"] == "node_lost":
        yield f" lost a node ({detail}): it goes on elsewhere"
        return
    if data["why"] == "run_lost":
        yield f" lost its run ({detail}), which is no failure of its own: "
        yield "it is started again in "
        yield time(data["wait_s"])
        yield f", {FROM_KEPT}"
        return
    if data["why"] == "not_ready":
        yield f" could not be started ({detail}), which is no failure of its own: tried again in "
        yield time(data["wait_s"])
        return
    if data["why"] == "asked":
        said = f" ({data['said']})" if data.get("said") else ""
        yield f" asked to be started again{said}, by exit code {data['exit_code']}"
        return
    if data["why"] == "width_failed":
        across = data.get("across_nodes", False)
        failed = Placement(data.get("gpu_type", ""), data.get("width", 0), across)
        back = Placement(data.get("back_gpu_type", ""), data.get("back_width", 0), False)
        why = failed_by(detail, data.get("said", ""))
        yield f": {goes_back(failed, why, back)}; this counts as no failure of the job's"
        return
    why = failed_by(failure(data["why"], data["exit_code"], detail), data.get("said", ""))
    yield f" failed ({why}): tried again in "
    yield time(data["wait_s"])
    yield f" ({data.get('failures', 1)} of at most {data.get('retries', 0)} times in a row)"


def start(about: About, data: Start) -> Words:
    yield from named(about, data["name"])
    why = data.get("why")
    if why in ("widened", "squeezed", "moved"):
        yield from _changed(data)
    else:
        yield f" → {data['width']}×{data['gpu_type']}: {_cause(data)}"
        if why in ("first", "epoch", "plan") and "planned_width" in data:
            yield f"; {_too_few(data)}"
        if why != "short" and "saves_s" in data:
            yield "; "
            yield from _bought(data["saves_s"], data.get("extra_usd", 0.0))
    if data.get("lost_s"):
        yield "; does "
        yield worded(data.get("lost_s", 0.0))
        yield " of work again, which was in no checkpoint"


def _changed(data: Start) -> Words:
    """Other GPUs where whole nodes are paid for."""
    before, width = data.get("before_width", data["width"]), data["width"]
    yield f" → {width}×{data['gpu_type']}: "
    match data.get("why"):
        case "widened":
            yield f"{before} before; widened"
        case "squeezed":
            yield f"{before} before; squeezed"
            if "for_job" in data:
                yield " for "
                yield Part(f"job {data['for_job']}", job=data["for_job"])
                if data.get("wait_s"):
                    yield ", which would otherwise wait "
                    yield time(data.get("wait_s", 0.0))
                    yield " for a node"
        case _:
            yield f"{before}×{data.get('before_gpu_type', '')} before"
    if "saves_s" in data:
        saves = data["saves_s"]
        yield "; saves " if saves >= 0 else "; costs it "
        yield worded(abs(saves))
        if data.get("pause_s"):
            yield ", a pause of "
            yield worded(data.get("pause_s", 0.0))
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
        case "returned":
            return "has GPUs again"
    if data["epochs"] > 1:
        reached = f"{min(data['epoch'] + 1, data['epochs'])} of {data['epochs']}"
        return f"starts again, having reached epoch {reached}"
    return "starts again"


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
        yield worded(saves)
        yield f" {'for' if extra > 0 else 'and'} {dollars(abs(extra))}"
        return
    yield "cheaper: " if extra < 0 else ""
    if saves < -_NO_TIME_S:
        yield worded(-saves)
        yield " later"
    else:
        yield "as fast"
    yield f", saves {dollars(-extra)}" if extra < 0 else f", for {dollars(extra)} more"
