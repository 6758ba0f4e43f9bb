"""Damaged stores: what `boa serve` makes of them, by seeded damages to the store of a real service.

Every one has to come up whole, or be refused with exit code 2 and one clear line; and after that,
opened knowingly or restored from a snapshot, with nothing acknowledged missing unsaid, and no
number of a job given out again.

.venv/bin/python bench/damage.py SEED COUNT [--only N] [--json] [--out FILE]
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from _damaged_services import Trial, attempt, make_scenes
from _damages import drawn
from _table import Measured, show, write


def trials(seed: int, count: int, root: Path, only: int | None = None) -> list[Trial]:
    scenes, done = make_scenes(root / "scenes"), []
    for number, kind in drawn(seed, count):
        if only is not None and number != only:
            continue
        folder = root / f"trial-{number}"
        done.append(attempt(scenes, number, kind, seed, folder))
        print(f"{number}: {done[-1]}", file=sys.stderr, flush=True)
        if not done[-1].violations:
            shutil.rmtree(folder, ignore_errors=True)
    return done


def table(done: list[Trial], seed: int, took_s: float) -> Measured:
    wrong = sum(bool(trial.violations) for trial in done)
    ends = Counter(trial.outcome for trial in done)
    note = (
        f"seed {seed}: {len(done)} stores in {took_s:.0f} s; {ends['whole']} came up whole, "
        f"{ends['refused']} were refused; {wrong} violations"
    )
    measured = Measured("Damaged stores", note=note)
    for kind in sorted({trial.kind for trial in done}):
        of = [trial for trial in done if trial.kind == kind]
        then = Counter(trial.then for trial in of if trial.then)
        measured.add(
            damage=kind,
            trials=len(of),
            whole=sum(trial.outcome == "whole" for trial in of),
            refused=sum(trial.outcome == "refused" for trial in of),
            then=", ".join(f"{n} {what}" for what, n in sorted(then.items())) or "–",
            most_lost=max(trial.lost for trial in of),
            violations=sum(bool(trial.violations) for trial in of),
        )
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--only", type=int, help="one trial, by its number")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="boa-damage-"))
    done = trials(given.seed, given.count, root, given.only)
    measured = table(done, given.seed, time.monotonic() - began)
    if given.out:
        write(given.out, [measured])
        whole = json.dumps([asdict(trial) for trial in done], indent=1)
        given.out.with_suffix(".trials.json").write_text(whole)
    if given.json:
        print(json.dumps([asdict(trial) for trial in done], indent=1))
    else:
        show(measured, Console())
    if any(trial.violations for trial in done):
        print(f"what is left of those trials is in {root}", file=sys.stderr)
        return 1
    shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
