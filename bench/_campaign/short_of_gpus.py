"""`bench/campaign.py --virtual`: episodes side by side, and the table of what they found."""

import argparse
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from _campaign.virtual import Found, run

SHOWN = 3
"""Violations of a kind that an episode prints."""
ALWAYS = (
    *("work lost without an event", "work of a job that cannot checkpoint lost"),
    *("more work lost than was told", "stop without an event", "false reason"),
    *("saves more than there truly is", "last GPUs taken for no job of a higher priority"),
    *("preempted by a job of no higher priority", "displaced by a retry of a job that fails"),
    *("a newcomer starts before a job that was preempted", "overtaken after its turn had come"),
    *("a higher priority waits behind a lower one", "starves", "waits next to empty GPUs"),
    *("never ends", "rescaled again too soon", "crash"),
)
"""Kinds that the table always has."""


def main(asked: argparse.Namespace) -> int:
    numbers = [asked.episode] if asked.episode is not None else range(asked.count)
    began, found = time.monotonic(), list[Found]()
    for outcome in _outcomes(asked.seed, numbers, asked.jobs):
        found.append(outcome)
        _tell(outcome)
        if asked.json is not None:
            took_s = time.monotonic() - began
            asked.json.write_text(json.dumps(_document(found, took_s), indent=1))
    print(table(found))
    print(f"{len(found)} episodes in {time.monotonic() - began:.0f} s")
    return 1 if any(outcome.violations for outcome in found) else 0


def _outcomes(seed: int, numbers: Sequence[int], jobs: int) -> Iterator[Found]:
    if jobs <= 1 or len(numbers) == 1:
        yield from map(partial(run, seed), numbers)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(partial(run, seed), numbers)


def _tell(outcome: Found) -> None:
    kinds = Counter(kind for kind, _ in outcome.violations)
    if not kinds:
        return
    where = f"{outcome.cluster}, paid by the {outcome.billing}"
    print(f"{outcome.number:>4} {where}: {outcome.again}", flush=True)
    for kind, count in kinds.items():
        print(f"     {count} × {kind}")
        for text in [text for other, text in outcome.violations if other == kind][:SHOWN]:
            print(f"         {text}", flush=True)


def table(found: Sequence[Found]) -> str:
    """Return the figures of all episodes as a table in Markdown."""
    kinds = Counter(kind for outcome in found for kind, _ in outcome.violations)
    episodes = Counter(
        kind for outcome in found for kind in {kind for kind, _ in outcome.violations}
    )
    rows = [("violation", "count", "episodes")]
    rows += [(kind, f"{kinds[kind]:,}", f"{episodes[kind]:,}") for kind in _order(kinds)]
    lines = [f"| {a} | {b} | {c} |" for a, b, c in rows]
    lines.insert(1, "| --- | ---: | ---: |")
    stops: Counter[str] = Counter()
    for outcome in found:
        stops.update(outcome.stops)
    held = sum(outcome.held_gpu_s for outcome in found)
    lost = sum(outcome.lost_gpu_s for outcome in found)
    lines += [
        "",
        f"{len(found):,} episodes, {sum(outcome.jobs for outcome in found):,} jobs, "
        f"{sum(outcome.events for outcome in found):,} events, of which "
        f"{sum(outcome.reasons for outcome in found):,} are starts with a reason.",
        f"{stops['ours']:,} stops by decision, {stops['ours, with work lost']:,} of them with work "
        f"lost: {lost / held if held else 0.0:.2%} of all GPU-seconds.",
    ]
    return "\n".join(lines)


def _order(kinds: Counter[str]) -> list[str]:
    return [*ALWAYS, *sorted(kinds.keys() - set(ALWAYS))]


def _document(found: Sequence[Found], took_s: float) -> dict[str, Any]:
    kinds = Counter(kind for outcome in found for kind, _ in outcome.violations)
    return {
        "took_s": took_s,
        "violations": dict(kinds),
        "held_gpu_s": sum(outcome.held_gpu_s for outcome in found),
        "lost_gpu_s": sum(outcome.lost_gpu_s for outcome in found),
        "episodes": [
            {
                "again": outcome.again,
                "cluster": outcome.cluster,
                "billing": outcome.billing,
                "jobs": outcome.jobs,
                "stops": dict(outcome.stops),
                "held_gpu_s": outcome.held_gpu_s,
                "lost_gpu_s": outcome.lost_gpu_s,
                "violations": outcome.violations,
            }
            for outcome in sorted(found, key=lambda outcome: outcome.number)
        ],
    }
