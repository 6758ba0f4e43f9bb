"""What Kubernetes costs: from the decision to the first step, from a wish to a node, at 500 pods.

A real control plane of this machine (etcd, API server, controllers, scheduler), with fake nodes
whose pods are processes, and with --real also ones with a kubelet, containerd and runc each. The
engine starts a small DDP training (bench/_restart_job.py, plain torch, Gloo, CPU) on new nodes and
once more on the same, then stops it; the local engine does the same in the same run, interleaved;
medians. Then BOA's cloud rents nodes from the double of Karpenter and gives them back. Then a
service has 500 pods.

.venv/bin/python bench/kubernetes.py [--quick] [--real] [--only PART] [--repeat N] [--out FILE]
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests"))

from _kube_load import load  # noqa: E402
from _kube_scaling import scaling  # noqa: E402
from _kube_starts import starts  # noqa: E402
from _table import Measured, show, write  # noqa: E402
from kube import control_plane  # noqa: E402
from kube.cluster import Cluster  # noqa: E402

PARTS = ("starts", "scaling", "load")
SILENT_S = 40
"""Seconds until a node counts as gone: Kubernetes' own. Tests have less, and less to do."""
REAL_COUNTS = (1, 4)
"""Nodes that are scaled up to with --real: each is a kubelet and a containerd."""


def main() -> None:
    options = _arguments()
    control_plane.NODE_SILENT_S = SILENT_S
    say: Callable[[str], None] = Console(stderr=True).print
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="boa-kube-bench-") as scratch, ExitStack() as after:
        clusters = {"fake": after.enter_context(Cluster.up())}
        if options.real:
            clusters["real"] = after.enter_context(Cluster.up(real=True))
        tables = _tables(clusters, Path(scratch), options, say)
    tables[0].note += f"; load {load_before[0]:.1f} before, {os.getloadavg()[0]:.1f} after"
    console = Console(width=None if sys.stdout.isatty() else 200)
    for table in tables:
        show(table, console)
    out = options.out or (None if options.quick else HERE / "out" / "kubernetes.json")
    if out is not None:
        write(out, tables)
        console.print(f"written to {out}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one node, without torch, few pods")
    parser.add_argument("--real", action="store_true", help="real kubelets as well: needs root")
    parser.add_argument("--only", choices=PARTS, help="this part alone")
    parser.add_argument("--repeat", type=int, help="how often (1 or 5)")
    parser.add_argument("--pods", type=int, help="of the service (4 or 500)")
    parser.add_argument("--steady", type=float, help="seconds in which nothing happens (2 or 60)")
    parser.add_argument("--out", type=Path, help="all figures (bench/out/kubernetes.json)")
    return parser.parse_args()


def _tables(
    clusters: dict[str, Cluster],
    scratch: Path,
    options: argparse.Namespace,
    say: Callable[[str], None],
) -> list[Measured]:
    quick: bool = options.quick
    found: list[Measured] = []
    repeat = options.repeat or (1 if quick else 5)
    if options.only in (None, "starts"):
        job = "_kube_light_job.py" if quick else "_restart_job.py"
        widths = (1,) if quick else (1, 2)
        found += starts(clusters, scratch, widths, repeat, job, say)
    if options.only in (None, "scaling"):
        for kind, cluster in clusters.items():
            counts = (1,) if quick else REAL_COUNTS if kind == "real" else (1, 4, 16)
            found += scaling(kind, cluster, scratch, counts, min(repeat, 3), say)
    if options.only in (None, "load"):
        pods = options.pods or (4 if quick else 500)
        steady = options.steady or (2.0 if quick else 60.0)
        found.append(load(clusters["fake"], scratch / "load", pods, steady, say))
    return found


if __name__ == "__main__":
    main()
