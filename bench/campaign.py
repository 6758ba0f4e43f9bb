"""Faults without end: random ones, by a seed, over real services; and what must hold all the same.

Every episode has a world of its own: `boa serve` on a small ext4 of its own (a loop device; a plain
folder where that may not be mounted), with the local engine, PostgreSQL, Ray, or instances of an
AWS emulator; a few small jobs, three to seven faults, and recovery. Processes are killed and
stopped, the power is cut, disks fail, fill up and turn read-only, files are damaged, clocks jump,
second services come, cloud calls are lost. Then an observer with books of its own checks that
nothing acknowledged was lost, nothing ran twice at once, no work was counted twice, no node is
forgotten, the ledger equals the cloud's book, the cap was never crossed, and the service is back.

.venv/bin/python bench/campaign.py SEED COUNT [--only FAULTS] [--worlds local,…] [--json FILE]
.venv/bin/python bench/campaign.py SEED --episode N     one of them again
.venv/bin/python bench/campaign.py --list               the faults that can be had here
.venv/bin/python bench/campaign.py SEED COUNT --virtual [--jobs N] [--json FILE]

COUNT faults strike in all. Exits with 1 if anything was violated.

`--virtual`: COUNT episodes on small clusters that are short of GPUs, in virtual time: the real
control loop and store, and jobs that are acted out, with and without checkpoints, that crash, are
urgent, have deadlines and weights, are paused, belong to teams under caps. No work may be lost by a
decision without an event, none at all of a job that cannot checkpoint; only a higher priority takes
last GPUs; every reason must be true, and no job may starve.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from _campaign import disks, shim, short_of_gpus
from _campaign.episode import MOST, SHARES, Episode, Outcome, planned, possible, run
from _campaign.faults import Fault
from _campaign.makers import Makers, available
from _campaign.processes import adopt_orphans, below, end_all
from _campaign.world import Means


def main() -> int:
    asked = _arguments()
    if asked.virtual:
        return short_of_gpus.main(asked)
    with _means(plain=asked.plain) as means, ExitStack() as open_worlds:
        worlds = [name for name in asked.worlds.split(",") if name in available()]
        known = possible(means, worlds, asked.only.split(",") if asked.only else ())
        if asked.list:
            for one in known:
                print(f"{one.name:<26} {', '.join(w for w in one.worlds if w in worlds)}")
            return 0
        if not known:
            print("no such fault can be had here: see --list", file=sys.stderr)
            return 2
        makers = open_worlds.enter_context(Makers(means))
        outcomes: list[Outcome] = []
        began = time.monotonic()
        for episode in _episodes(asked, worlds, known, outcomes):
            outcomes.append(run(episode, means, makers.of(episode.world)))
            _tell(outcomes[-1], outcomes, began)
            _write(asked.json, outcomes, time.monotonic() - began)
        _sum_up(outcomes, time.monotonic() - began)
        return 1 if any(one.violations for one in outcomes) else 0


def _episodes(
    asked: argparse.Namespace, worlds: list[str], known: list[Fault], outcomes: list[Outcome]
) -> Iterator[Episode]:
    options = f" --worlds {','.join(worlds)}"
    options += f" --only {asked.only}" if asked.only else ""
    options += f" --most {asked.most}" if asked.most != MOST else ""
    options += " --plain" if asked.plain else ""
    if asked.episode is not None:
        yield planned(asked.seed, asked.episode, worlds, known, asked.most, options)
        return
    number = 0
    while sum(one.struck.total() for one in outcomes) < asked.count:
        yield planned(asked.seed, number, worlds, known, asked.most, options)
        number += 1


def _tell(outcome: Outcome, outcomes: list[Outcome], began: float) -> None:
    struck = sum(one.struck.total() for one in outcomes)
    wrong = sum(bool(one.violations) for one in outcomes)
    episode = outcome.episode
    print(
        f"{episode.number:>4} {episode.world:<10} {outcome.took_s:5.1f} s  "
        f"{', '.join(outcome.told[: len(episode.faults) + 1])}   "
        f"[{struck} faults, {wrong} episodes violated, {time.monotonic() - began:.0f} s]",
        flush=True,
    )
    for text in outcome.violations:
        print(f"     VIOLATED: {text}\n     again: {episode.again}", flush=True)


def _counted(outcomes: list[Outcome]) -> tuple[Counter[str], Counter[str]]:
    struck: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for one in outcomes:
        struck.update(one.struck)
        missed.update(one.missed)
    return struck, missed


def _sum_up(outcomes: list[Outcome], took_s: float) -> None:
    struck, _ = _counted(outcomes)
    print(f"{struck.total()} faults in {len(outcomes)} episodes, {took_s:.0f} s:")
    for name, count in sorted(struck.items()):
        print(f"  {count:>4} {name}")
    print(f"{sum(bool(one.violations) for one in outcomes)} episodes violated something")


def _write(path: Path | None, outcomes: list[Outcome], took_s: float) -> None:
    """After every episode, so that one that is ended early has its outcome too."""
    if path is not None:
        struck, missed = _counted(outcomes)
        document = {
            "faults": dict(struck),
            "missed": dict(missed),
            "took_s": took_s,
            "episodes": [_document(one) for one in outcomes],
        }
        path.write_text(json.dumps(document, indent=1))


def _document(outcome: Outcome) -> dict[str, object]:
    return {
        "again": outcome.episode.again,
        "world": outcome.episode.world,
        "struck": dict(outcome.struck),
        "missed": dict(outcome.missed),
        "violations": outcome.violations,
        "told": outcome.told,
        "evidence": outcome.evidence,
        "took_s": outcome.took_s,
    }


@contextmanager
def _means(plain: bool) -> Iterator[Means]:
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and leave nobody behind
    root = Path(tempfile.mkdtemp(prefix="boa-campaign-"))
    root.chmod(0o755)
    try:
        yield Means(root, not plain and disks.can_mount(root), shim.built(root))
    finally:
        end_all(lambda: below(os.getpid()))
        shutil.rmtree(root, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("count", type=int, nargs="?", default=60)
    parser.add_argument("--episode", type=int, metavar="N", help="only this one")
    parser.add_argument("--only", metavar="FAULTS", help="only these, with commas between")
    parser.add_argument("--most", type=int, default=MOST, help="faults in an episode, at most")
    parser.add_argument("--worlds", default=",".join(SHARES), help="by default all that can be had")
    parser.add_argument("--plain", action="store_true", help="a plain folder, no disk of its own")
    parser.add_argument("--list", action="store_true", help="the faults that can be had here")
    parser.add_argument("--virtual", action="store_true", help="short of GPUs, in virtual time")
    parser.add_argument("--jobs", type=int, default=1, help="episodes at once, with --virtual")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the outcome goes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
