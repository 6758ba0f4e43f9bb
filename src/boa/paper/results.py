"""From studies to files: a picture, a table and a line each, and a summary of them all."""

import csv
import io
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from boa.paper.data import trace_file
from boa.paper.pool import RUNS, ResultStore, Say, run_all, write
from boa.paper.runs import Run
from boa.paper.study import Evidence, Row, Scale, Study, StudyOutcome, Table, table_lines
from boa.paper.summary import SUMMARY, begun, finite
from boa.plots.style import saved

BATCHES = 8
"""How often studies may ask for more: a grid, and then a few steps of tuning."""
SUFFIXES = (".svg", ".png", ".csv")
"""Files of a study: the picture twice, and its table."""


def redo(
    chosen: Sequence[Study],
    folder: Path,
    data: Path,
    scale: Scale,
    *,
    jobs: int,
    say: Say,
    tell: Callable[[Mapping[str, Any]], None],
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Run what is missing, write every study's files, and tell each result as it is known."""
    began = clock()
    store = ResultStore(folder, data)
    evidence = Evidence(store, scale, data)
    summary = begun(folder, scale)  # first: one that cannot be read is no reason to wait
    asked = run_missing(chosen, evidence, jobs=jobs, say=say)
    summary["not_made"] = not_made = dict[str, str]()
    for study in chosen:
        entry = finish(study, evidence, folder)
        why = _all_failed(asked[study.name], store)
        if why and not entry["files"]:
            not_made[study.name] = why
            say(f"{study.name}: none of the runs that it lacked could be made: {why}")
            continue
        summary["studies"][study.name] = entry
        tell(entry)
    summary["failed_runs"] = {f"{run.label} ({run.key})": why for run, why in store.failed.items()}
    summary["stale"] = stale = store.stale()
    if stale:
        say(f"{stale} results were made by other code; delete {folder / RUNS} to redo them")
    summary["wall_s"] = round(clock() - began, 1)
    whole: dict[str, Any] = finite(summary)
    write(folder / SUMMARY, json.dumps(whole, indent=2, allow_nan=False) + "\n")
    return whole


def lacking(study: Study, evidence: Evidence) -> Path | None:
    """A trace that it takes and that is not there."""
    files = (trace_file(evidence.data, run.setting, run.cut) for run in study.runs(evidence))
    return next((file for file in files if not file.is_file()), None)


def run_missing(
    chosen: Sequence[Study], evidence: Evidence, *, jobs: int, say: Say
) -> dict[str, list[Run]]:
    """Batch after batch, as later questions depend on earlier answers; the runs by study."""
    asked: dict[str, list[Run]] = {study.name: [] for study in chosen}
    for _ in range(BATCHES):
        for study in chosen:
            asked[study.name] += study.runs(evidence)
        missing = evidence.store.missing(run for runs in asked.values() for run in runs)
        if not missing:
            break
        run_all(evidence.store, missing, jobs=jobs, say=say)
    return asked


def _all_failed(runs: Sequence[Run], store: ResultStore) -> str:
    """Why the first of them did, if they all did."""
    return store.failed[runs[0]] if runs and all(run in store.failed for run in runs) else ""


def finish(study: Study, evidence: Evidence, folder: Path) -> dict[str, Any]:
    """Write NAME.csv, NAME.svg and NAME.png; give the summary's entry."""
    outcome = study.result(evidence)
    files = []
    if outcome.rows:
        figure = study.draw(outcome)
        for suffix in (".svg", ".png"):
            write(folder / f"{study.name}{suffix}", saved(figure, suffix))
            files.append(f"{study.name}{suffix}")
        write(folder / f"{study.name}.csv", csv_of(outcome.rows))
        files.append(f"{study.name}.csv")
    return _entry(study, evidence.scale, outcome, files)


def _entry(study: Study, scale: Scale, outcome: StudyOutcome, files: list[str]) -> dict[str, Any]:
    return {
        "name": study.name,
        "where": study.where,
        "scale": scale.name,
        "claim": study.claim,
        "measured": outcome.measured,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "numbers": dict(outcome.numbers),
        "tables": [asdict(table) for table in outcome.tables],
        "files": files,
    }


def csv_of(rows: Sequence[Row]) -> str:
    heads = list(dict.fromkeys(key for row in rows for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, heads, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def markdown(summary: Mapping[str, Any], order: Sequence[str]) -> Iterator[str]:
    """Tables for docs/evaluation.md, line by line: the paper's claims, our own studies, and what
    these have in tables."""
    entries = [summary["studies"][name] for name in order if name in summary["studies"]]
    ours = [entry for entry in entries if entry["verdict"] == "ours"]
    claims = [
        (_named(e), e["claim"], e["measured"], f"**{e['verdict']}**: {e['reason']}")
        for e in entries
        if e not in ours
    ]
    yield from table_lines(("", "the paper", "here", ""), claims)
    if ours:
        yield ""
        rows = [(_named(e), e["claim"], f"{e['measured']} ({e['reason']})") for e in ours]
        yield from table_lines(("", "question", "measured"), rows)
    for entry in entries:
        for table in entry.get("tables", ()):
            yield ""
            yield from Table(**table).lines()


def _named(entry: Mapping[str, Any]) -> str:
    return f"`{entry['name']}` ({entry['where']})"
