"""Sentences about what is paid for now: why a node is there, and why a job waits for one."""

from typing import Literal

from boa.model.cluster import NodeReason
from boa.model.records import NodeRecord
from boa.scheduler.words.amounts import rate
from boa.units import UsdPerHour

PAYS = 0.65
"""Part of its price that a node is worth that is kept for its worth alone: a little less than the
part below which it is given back, since worths are shown rounded."""
WaitCode = Literal["no_plan", "boot", "others", "turn", "modest", "no_room", "worth"]
"""Why a job that a market gives no GPUs waits."""
WAITS: dict[WaitCode, str] = {
    "no_plan": "waits for a plan that knows its class",
    "boot": "waits for a node that boots",
    "others": "waits for GPUs that another run is leaving",
    "turn": "waits its turn: another job is ahead of it and has waited for long",
    "modest": "failed lately: waits for free GPUs, and displaces no other job",
    "no_room": "waits for GPUs: no further node is allowed (max_nodes) or to be had",
    "worth": "waits for money, half an hour at most: it is worth less than a node costs now",
}


def waits_in_background(empty: int, least: int) -> str:
    """`empty`: GPUs that are paid for and that nobody has; `least`: what the job can run on."""
    if not empty:
        return "waits: background; no GPU is paid for and empty"
    gpus = f"{empty} GPU{'s' * (empty != 1)}"
    if empty < least:
        return f"waits: background; {gpus} paid for and empty, and it needs {least}"
    return f"waits: background; {gpus} paid for and empty, not yet for long or not for it"


def waits_for_cap(cap: str) -> str:
    """`cap`: with where it came from."""
    named = cap or "the cap on the spend"
    return f"waits: the nodes that it needs would cost more than {named} leaves"


def kept(node: NodeRecord, worth: UsdPerHour | None, *, weighed: bool, draining: bool) -> str:
    """Why a node is paid for; empty where nobody weighed it. `worth`: in USD per hour; None
    although it was weighed: money is not short."""
    if node.reason:
        return node.reason
    price = rate(node.price * node.gpus)
    said = "" if worth is None else f"worth {rate(max(worth, 0.0))} to jobs, for {price}"
    pays = worth is None or worth >= PAYS * node.price * node.gpus
    match node.state:
        case "requested":
            return f"boots: {said}" if said else "boots"
        case "releasing":
            return f"given back: {price} until it is gone"
        case "ready" if draining:
            return f"to go once it is empty{f': {said}' if said else ''}"
        case "ready" if weighed:
            if not pays:  # jobs that have begun, or have waited for long, are not sent away
                return f"kept all the same: {said}"
            return f"kept: {said or 'jobs gain by it, and the plan leaves money over'}"
    return ""


def rounded_worth(why: NodeReason | None) -> UsdPerHour | None:
    """Worth of a node to two digits: it moves with every job's every step."""
    if why is None or why.worth_per_hour is None:
        return None
    return float(f"{why.worth_per_hour:.2g}")
