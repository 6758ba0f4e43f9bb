"""The sentence of every event: made from its kind and fields, here and nowhere else. Pure.

A sentence is made of parts. Those that name a job, a node or a time say so, so that whoever shows
them can link and round as they like without reading the words.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from boa.model.cluster import JobId, NodeId
from boa.model.events import EventKind, has_its_fields
from boa.model.records import Event
from boa.scheduler.words import of_jobs, of_nodes, of_service, of_shortages, of_terms
from boa.scheduler.words.pieces import About, Part, Words


def sentence(
    kind: EventKind, job: JobId | None, node: NodeId | None, data: Mapping[str, Any]
) -> str:
    """Text of an event with all fields of its kind."""
    return "".join(text(part) for part in WORDS[kind](About(kind, job, node), data))


def parts(event: Event) -> list[Part]:
    """Parts of an event's text. One that was written by another version stays in one piece: what
    was said is not reworded."""
    if not has_its_fields(event.kind, event.data):
        return [Part(event.text)]
    about = About(event.kind, event.job, event.node)
    try:
        found = joined(WORDS[event.kind](about, event.data))
    except (LookupError, TypeError, ValueError):  # a code or a value that only its writer knew
        return [Part(event.text)]
    same = "".join(part.text for part in found) == event.text
    return found if same else [Part(event.text)]


def without_log(event: Event) -> Event:
    """The same for who may not read the log of its job: without the line that is from there."""
    said = event.data.get("said")
    if not said:
        return event
    data = {name: value for name, value in event.data.items() if name != "said"}
    try:
        text = sentence(event.kind, event.job, event.node, data)
    except (LookupError, TypeError, ValueError):  # written by another version
        text = event.text.replace(str(said), "…")
    return replace(event, data=data, text=text)


def text(part: str | Part) -> str:
    return part if isinstance(part, str) else part.text


def joined(words: Words) -> list[Part]:
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


WORDS: Mapping[EventKind, Callable[[About, Any], Words]] = {
    "submitted": of_jobs.submitted,
    "started": of_jobs.start,
    "rescaled": of_jobs.start,
    "restarted": of_jobs.start,
    "preempted": of_terms.preempted_told,
    "stop": of_terms.stop,
    "stopped": of_terms.stopped,
    "succeeded": of_jobs.ended,
    "failed": of_jobs.failed,
    "retry": of_jobs.retry,
    "paused": of_terms.paused,
    "resumed": of_terms.resumed,
    "changed": of_terms.changed,
    "limit": of_terms.limit,
    "deadline": of_terms.deadline,
    "node_rented": of_nodes.node_rented,
    "node_ready": of_nodes.node_ready,
    "node_released": of_nodes.node_released,
    "node_leaving": of_nodes.node_leaving,
    "node_gone": of_nodes.node_gone,
    "node_lost": of_nodes.node_lost,
    "orphan": of_nodes.orphan,
    "shortage": of_shortages.told,
    "planned": of_service.planned,
    "budget": of_service.budget,
    "period": of_service.period,
    "used_up": of_service.used_up,
    "clock": of_service.clock,
    "trouble": of_service.trouble,
    "other": of_service.other,
}
