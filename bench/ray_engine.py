"""What Ray costs: from the decision to the first training step, and from a wish to a node.

The Ray engine starts a small DDP training (bench/_restart_job.py, plain torch, Gloo, CPU) on a real
Ray cluster of this machine, on 1, 2 and 4 ranks in turn, then stops it; the local engine does the
same with the same job, cold, in the same run, interleaved; medians. Then BOA's Ray cloud rents
nodes from the real autoscaler (v2) with Ray's fake provider, and gives them back: how much of it is
the provider's own time.

.venv/bin/python bench/ray_engine.py [--quick] [--repeat N] [--out FILE]
"""

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from _ray_scaling import scaling
from _ray_starts import starts
from _table import show, write

HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 ranks and one node only")
    parser.add_argument("--repeat", type=int, help="how often (2 or 5)")
    parser.add_argument("--out", type=Path, help="all figures (bench/out/ray_engine.json)")
    options = parser.parse_args()
    widths, counts = ((2,), (1,)) if options.quick else ((1, 2, 4), (1, 4))
    repeat = options.repeat or (2 if options.quick else 5)
    say = Console(stderr=True).print
    with tempfile.TemporaryDirectory(prefix="boa-ray-") as scratch:
        tables = [
            *starts(Path(scratch), widths, repeat, say),
            *scaling(Path(scratch), counts, 1 if options.quick else 3, say),
        ]
    console = Console(width=None if sys.stdout.isatty() else 160)
    for table in tables:
        show(table, console)
    out = options.out or (None if options.quick else HERE / "out" / "ray_engine.json")
    if out is not None:
        write(out, tables)
        console.print(f"written to {out}")


if __name__ == "__main__":
    main()
