"""What a billed dollar buys: BOA by the node, BOA by the GPU, and rivals with autoscaling.

Whole nodes are billed from the request until they are gone, and take two minutes to boot; speeds
are known. JCT ÷ bound: against the exact plan by the GPU, without boots, at a budget equal to what
was billed, so that nobody can be below 1. Rivals are held against BOA at the same bill, by
interpolation in the logarithms between runs. Runs are kept in a file and not made twice, so it
can be stopped and taken up again.

.venv/bin/python bench/bill.py [--quick] [--settings ...] [--draws 3] [--rescale 2 paper]
    [--reclaim 0 300] [--policies market boa pollux-autoscale sia-autoscale] [--jobs 2] [--json F]
"""

import argparse
import json
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from _bills import SETTINGS, Run, measured
from _table import Measured, show, write
from boa.sim.foretold import STUDENT

HERE = Path(__file__).resolve().parent
BUDGETS = (1.15, 1.35, 1.6, 2.0, 2.6)
"""Of both BOAs, as multiples of the cheapest plan's spend: five bills from cheap to rich."""
TARGETS = (0.35, 0.5, 0.62, 0.74, 0.86)
AT = (1.2, 1.5, 1.8, 2.2, 2.6)
"""Bills at which they are compared, in cheapest plans."""

Found = dict[str, dict[str, Any]]


def main() -> None:
    options = _arguments()
    status, console = Console(stderr=True), Console(width=170)
    runs = list(_runs(options))
    found = _all(runs, options, status)
    tables = [*_tables(runs, found), _kept(runs, found)]
    for table in tables:
        show(table, console)
    write(options.json, tables)
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the 85 jobs, one draw, r = 2 s")
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), help="parts of names")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--rescale", nargs="*", default=["2", "paper"])
    parser.add_argument("--reclaim", nargs="*", type=float, default=[0.0, 300.0])
    parser.add_argument(
        "--policies",
        nargs="*",
        default=["market", "boa", "pollux-autoscale", "sia-autoscale"],
        help="market is BOA by the node, boa by the GPU",
    )
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--kept", type=Path, default=HERE / "out" / "bill-runs.json")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "bill.json")
    options = parser.parse_args()
    if options.quick:
        options.settings, options.draws = ["85 jobs"], 1
        options.rescale, options.reclaim = ["2"], [0.0]
        options.policies = ["market", "boa"]
    return options


def _runs(options: argparse.Namespace) -> Iterable[Run]:
    for name in SETTINGS:
        if not any(part in name for part in options.settings):
            continue
        for rescale in options.rescale:
            for reclaim in options.reclaim:
                for policy in options.policies:
                    if policy == "pollux-autoscale" and len(SETTINGS[name].gpus) > 1:
                        continue  # it knows one GPU type
                    for draw in range(1, options.draws + 1):
                        for knob in BUDGETS if policy in ("market", "boa") else TARGETS:
                            yield Run(
                                setting=name,
                                draw=draw,
                                rescale_s=None if rescale == "paper" else float(rescale),
                                reclaim_s=reclaim,
                                policy=policy,
                                knob=knob,
                            )


def _all(runs: Sequence[Run], options: argparse.Namespace, status: Console) -> Found:
    options.kept.parent.mkdir(parents=True, exist_ok=True)
    found: Found = json.loads(options.kept.read_text()) if options.kept.exists() else {}
    missing = [run for run in runs if run.key not in found]
    with ProcessPoolExecutor(options.jobs) as pool:
        asked = {pool.submit(measured, run, options.data): run for run in missing}
        for n, done in enumerate(as_completed(asked), 1):
            run = asked[done]
            found[run.key] = done.result()
            options.kept.write_text(json.dumps(found))
            status.print(f"{n}/{len(missing)} {run.key}: {found[run.key]['wall_s']:.1f} s")
    return found


def _tables(runs: Sequence[Run], found: Found) -> Iterable[Measured]:
    cases = dict.fromkeys((run.setting, run.rescale_s, run.reclaim_s) for run in runs)
    for case in cases:
        setting, rescale_s, reclaim_s = case
        r = "the authors' own" if rescale_s is None else f"{rescale_s:g} s"
        table = Measured(
            f"{setting}; rescaling {r}, reclaiming {reclaim_s:g} s",
            note="JCT ÷ bound at bills of so many cheapest plans, mean over draws ± 95 %; "
            "in brackets a rival's JCT ÷ BOA's by the node at the same bill",
        )
        here = [run for run in runs if (run.setting, run.rescale_s, run.reclaim_s) == case]
        for policy in dict.fromkeys(run.policy for run in here):
            cells: dict[str, Any] = {"policy": policy}
            for at in AT:
                cells[f"{at:g}"] = _cell(here, found, policy, at)
            table.add(**cells)
        yield table


def _cell(runs: Sequence[Run], found: Found, policy: str, at: float) -> str:
    ratios, against = [], []
    for draw in sorted({run.draw for run in runs}):
        own = _at(runs, found, policy, draw, at)
        if own is None:
            continue
        jct, bound = own
        ratios.append(jct / bound)
        ours = _at(runs, found, "market", draw, at)
        if ours is not None and policy != "market":
            against.append(jct / ours[0])
    if not ratios:
        return "–"
    text = f"{np.mean(ratios):.3f}"
    if len(ratios) > 1:
        spread = (
            STUDENT.get(len(ratios), STUDENT[5]) * np.std(ratios, ddof=1) / math.sqrt(len(ratios))
        )
        text += f" ± {spread:.3f}"
    return text + (f" ({np.mean(against):.2f})" if against else "")


def _at(
    runs: Sequence[Run], found: Found, policy: str, draw: int, at: float
) -> tuple[float, float] | None:
    """JCT and bound at a bill, between two runs; None where no two runs lie around it."""
    points = sorted(
        (one["bill"] / one["cheapest"], one["jct_s"], one["bound_jct_s"])
        for run in runs
        if (run.policy, run.draw) == (policy, draw)
        and (one := found[run.key])["bound_jct_s"] is not None
        and one["completed"] == 1.0
    )
    bills = np.log([point[0] for point in points])
    if len(points) < 2 or not bills[0] <= math.log(at) <= bills[-1]:
        return None
    jct, bound = (
        math.exp(float(np.interp(math.log(at), bills, np.log([point[n] for point in points]))))
        for n in (1, 2)
    )
    return jct, bound


def _kept(runs: Sequence[Run], found: Found) -> Measured:
    table = Measured(
        "BOA by the node: the bill against the budget", note="over all draws; held: by jobs"
    )
    cases = dict.fromkeys((run.setting, run.rescale_s, run.reclaim_s, run.knob) for run in runs)
    for case in cases:
        here = [
            found[run.key]
            for run in runs
            if (run.setting, run.rescale_s, run.reclaim_s, run.knob) == case
            and run.policy == "market"
        ]
        if here:
            table.add(
                setting=case[0],
                rescaling_s="own" if case[1] is None else f"{case[1]:g}",
                reclaiming_s=case[2],
                budget=float(np.mean([one["asked"] for one in here])),
                bill_over_budget=float(np.mean([one["bill"] / one["asked"] for one in here])),
                worst=max((one["bill"] / one["asked"] for one in here), key=lambda x: abs(x - 1)),
                held=float(np.mean([one["held"] for one in here])),
                jct_over_bound=float(
                    np.mean([one["jct_s"] / (one["bound_jct_s"] or math.nan) for one in here])
                ),
                rescalings=float(np.mean([one["rescalings"] for one in here])),
            )
    return table


if __name__ == "__main__":
    main()
