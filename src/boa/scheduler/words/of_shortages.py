"""Sentences about too few GPUs, and what is left instead."""

from boa.model.events import Short, Shortage
from boa.scheduler.words.pieces import About, Words, named, time
from boa.units import GpuName


def told(about: About, data: Short) -> Words:
    if data["why"] == "refused":
        yield f"no {data['gpu_type']} node to be had ({data.get('detail', '')}); asking again in "
        yield time(data.get("again_s", 0.0))
        return
    yield from named(about, data.get("name", ""))
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
            cap = found.detail or "the cap on the spend"
            return f"another {gpu} node would cost more than {cap} leaves"
        case "part_cap":
            return found.detail
    nodes = f"{found.most_nodes} node{'s' if found.most_nodes != 1 else ''}"
    said = f" ({found.detail})" if found.detail else ""
    return f"no more than {nodes} of {gpu} can be had now{said}"
