"""The state of a pod, read from its object: placed, up or over, and why not. Pure."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from boa.engines.kubernetes.in_pod import exit_code
from boa.engines.kubernetes.names import FINALIZER, GO, LAUNCH
from boa.engines.kubernetes.template import CONTAINER
from boa.units import Seconds, wall_time

Stage: TypeAlias = Literal["pending", "placed", "running", "over", "rejected"]
"""Not on a node yet; on it, and not begun; its container runs; all of its have ended; ended by the
kubelet before anything of it began, which another such pod may not be."""
AT_ONCE = ("InvalidImageName", "ErrImageNeverPull")
"""Reasons for waiting that time does not mend …"""
IMAGE = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError", *AT_ONCE)
BROKEN = (
    *IMAGE,
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
)
"""… and those that it seldom does."""
_REJECTED = ("OutOf", "UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "Preempting")
"""Beginnings of reasons of a kubelet's that does not let a pod in: two may meet on one GPU."""
_LEAVING = ("NodeShutdown", "Shutdown", "Terminated", "NodeLost")
_LONGEST = 300
_CODES = range(-64, 256)
"""Signals, and what a process may exit with."""
_RANK, _MOST_BYTES = re.compile(r"[0-9]{1,9}"), 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How its container ended."""

    code: int | None
    stopped: bool = False
    lost: bool = False
    reason: str = ""
    up: bool = False
    at: Seconds = 0.0
    """By its node's clock."""
    seen: Mapping[int, int] = field(default_factory=dict)
    """Bytes that each rank has printed; empty: nobody could say."""
    unknown: bool = False
    """Whether the kubelet does not know either."""
    done: bool = False
    """Whether it had left its sign that its work was finished."""
    told: bool = False
    """Whether its supervisor has said so, and not the kubelet alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    name: str
    uid: str
    tag: str
    """The start that it is of."""
    stage: Stage
    address: str = ""
    going: bool = False
    """Its container runs: it may have begun, and not ended."""
    left_behind: bool = False
    """Our container has ended, and others beside it have not."""
    node_leaves: bool = False
    """Its node has ended it because it goes down itself."""
    deleted: str = ""
    """When somebody has asked for its end."""
    disruption: str = ""
    """Why, where the cluster says."""
    waiting: str = ""
    """The kubelet's word for what keeps its container from running …"""
    why: str = ""
    """… and all that is known of why it is not up."""
    gate: str = ""
    """The word that all pods were up, and where the first is."""
    outcome: Outcome | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    other_finalizers: tuple[str, ...] = ()
    """Those of whoever else wants to hear of its end."""


def read(pod: Mapping[str, Any]) -> PodState:
    metadata, status = pod["metadata"], pod.get("status") or {}
    annotations = metadata.get("annotations") or {}
    about = _about(annotations.get(LAUNCH, ""))
    state = _state(status)
    stage = _stage(pod, status, state)
    waiting = str((state.get("waiting") or {}).get("reason") or "")
    return PodState(
        name=metadata["name"],
        uid=metadata["uid"],
        tag=str(about.get("tag", "")),
        stage=stage,
        address=status.get("podIP") or "",
        going="running" in state,
        left_behind=stage == "running" and "terminated" in state,
        node_leaves=status.get("reason") in _LEAVING,
        deleted=metadata.get("deletionTimestamp") or "",
        disruption=_disruption(status),
        waiting=waiting if stage in ("pending", "placed") else "",
        why=_why(status, state),
        gate=annotations.get(GO, ""),
        outcome=_outcome(status, state) if stage == "over" else None,
        about=about,
        other_finalizers=tuple(one for one in metadata.get("finalizers") or () if one != FINALIZER),
    )


def unreadable(pod: Mapping[str, Any], trouble: Exception) -> PodState | None:
    """One that is not as pods are: over, so that what runs in it is not lost sight of, and goes.
    None: it has not even a name."""
    metadata = pod.get("metadata") if isinstance(pod, Mapping) else None
    if not isinstance(metadata, Mapping):
        return None
    name, uid, annotations = (metadata.get(key) for key in ("name", "uid", "annotations"))
    if not isinstance(name, str) or not isinstance(uid, str):
        return None
    about = _about(annotations.get(LAUNCH, "") if isinstance(annotations, Mapping) else "")
    reason = _short(f"lost: what the cluster says of its pod makes no sense: {trouble!r}")
    outcome = Outcome(code=None, reason=reason)
    tag = str(about.get("tag", ""))
    return PodState(name=name, uid=uid, tag=tag, stage="over", about=about, outcome=outcome)


def _about(text: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return {}


def _state(status: Mapping[str, Any]) -> dict[str, Any]:
    """The state of our container; those of others end with it."""
    found = [one for one in status.get("containerStatuses") or () if one["name"] == CONTAINER]
    return _state_of(found[0]) if found else {}


def _state_of(container: Mapping[str, Any]) -> dict[str, Any]:
    """Its state. A kubelet that has removed it before it wrote down its end says that it waits, and
    that it ended before: none of ours is ever begun twice."""
    state = {k: v for k, v in (container.get("state") or {}).items() if v}
    last = (container.get("lastState") or {}).get("terminated")
    return {"terminated": last} if last and "waiting" in state else state


def _stage(pod: Mapping[str, Any], status: Mapping[str, Any], state: Mapping[str, Any]) -> Stage:
    phase = status.get("phase", "Pending")
    states = [_state_of(one) for one in status.get("containerStatuses") or ()]
    if phase == "Failed" and not state.get("terminated"):
        reason = str(status.get("reason") or "")
        return "rejected" if reason.startswith(_REJECTED) else "over"
    if phase in ("Succeeded", "Failed"):
        return "over"
    if states and all(one.get("terminated") for one in states):
        return "over"
    if state.get("running") or state.get("terminated"):
        return "running"  # with what the user has put beside it
    return "placed" if (pod.get("spec") or {}).get("nodeName") else "pending"


def _why(status: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """Why it is not up: as the kubelet says, or else the scheduler."""
    for waiting in _waiting(status, state):
        reason, message = waiting.get("reason") or "", waiting.get("message") or ""
        if reason not in ("", "ContainerCreating", "PodInitializing"):
            return _short(f"{reason}: {message}" if message else reason)
    if status.get("phase") == "Failed":
        return _short(f"{status.get('reason') or ''}: {status.get('message') or ''}".strip(": "))
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        return _short(str(scheduled.get("message") or scheduled.get("reason") or ""))
    return ""


def _waiting(status: Mapping[str, Any], state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    before = [one.get("state") or {} for one in status.get("initContainerStatuses") or ()]
    return [one["waiting"] for one in (*before, state) if one.get("waiting")]


def _disruption(status: Mapping[str, Any]) -> str:
    target = _condition(status, "DisruptionTarget")
    if target.get("status") == "True":
        return _short(str(target.get("message") or target.get("reason") or ""))
    if status.get("reason") in ("Evicted", "Preempting", *_LEAVING):
        return _short(f"{status['reason']}: {status.get('message') or ''}".strip(": "))
    return ""


def _outcome(status: Mapping[str, Any], state: Mapping[str, Any]) -> Outcome:
    """As its supervisor says, where that agrees with the kubelet: jobs can write that too."""
    ended = state.get("terminated") or {}
    reason, message = ended.get("reason") or "", str(ended.get("message") or "")
    at = wall_time(ended.get("finishedAt")) or 0.0
    if not ended or reason == "ContainerStatusUnknown":
        said = f"{status.get('reason') or ''}: {status.get('message') or ''}".strip(": ")
        said = said or "how its container ended is not known"
        return Outcome(code=None, reason=_short(f"lost: {said}"), at=at, unknown=True)
    code = int(ended.get("exitCode", 1))
    told = told_by(message)
    if told is not None and exit_code(told.code) == code:
        return replace(told, at=_within(told.at, wall_time(ended.get("startedAt")) or 0.0, at))
    if reason == "OOMKilled":
        return Outcome(code=-9, reason="killed: out of memory (OOMKilled)", up=True, at=at)
    if code > 128:
        return Outcome(code=128 - code, reason=f"killed by signal {code - 128}", up=True, at=at)
    if told is not None:
        said = f"its supervisor ended with exit code {code}, and told of another"
        return Outcome(code=None, reason=f"lost: {said}", at=at)
    if reason in ("StartError", "ContainerCannotRun") or (code in (126, 127, 128) and message):
        said = "its image cannot run python3, which the supervisor of jobs needs"
        return Outcome(code=None, reason=_short(f"{said}: {message}"), at=at)
    said = message or f"its supervisor ended with exit code {code}"
    return Outcome(code=None, reason=_short(f"lost: {said}"), at=at)


def _within(at: Seconds, began: Seconds, ended: Seconds) -> Seconds:
    """A time that was told, as far as the kubelet's allow, which are in whole seconds."""
    return min(max(at, began), ended + 1) if ended else 0.0


def told_by(message: str) -> Outcome | None:
    """As `in_pod` has it; None of anything else, whatever it is."""
    try:
        said = json.loads(message)
        code, at, seen = said["code"], said["at"], said["seen"]
        flags = [said[name] for name in ("stopped", "lost", "up")]
        known = code is None or (type(code) is int and code in _CODES)
        if not known or type(at) is not float or not math.isfinite(at):
            return None
        if any(type(flag) is not bool for flag in flags) or type(said["reason"]) is not str:
            return None
        return Outcome(
            code=code,
            stopped=flags[0],
            lost=flags[1] and code is None,
            reason=_short(said["reason"]),
            up=flags[2],
            at=at,
            seen=_seen(seen),
            done=said.get("done") is True,
            told=True,
        )
    except Exception:  # RecursionError, say: it is a job's word, and none of them may cost more
        return None


def _seen(said: Mapping[str, Any]) -> dict[int, int]:
    return {
        int(rank): count
        for rank, count in said.items()
        if _RANK.fullmatch(rank) and type(count) is int and 0 <= count < _MOST_BYTES
    }


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found = [one for one in status.get("conditions") or () if one.get("type") == kind]
    return found[0] if found else {}


def _short(text: str) -> str:
    """One line, of characters that can be printed and stored."""
    text = "".join(one if one.isprintable() else " " for one in text[: 10 * _LONGEST])
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
