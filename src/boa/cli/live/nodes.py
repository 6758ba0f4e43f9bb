"""`boa nodes`: what is rented, and who uses it."""

from boa.amounts import rate
from boa.cli.console import console, emit_json
from boa.cli.live.service import ago, connect
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import listing

MOST_JOBS = 6
HERE = ("", "127.0.0.1")
"""Addresses that say nothing: of nodes to come, and of this machine's own."""


def nodes(json: Json = False) -> None:
    """List the nodes that are paid for, and the jobs on them.

    [bold]Examples[/bold]
    [dim]$[/dim] boa nodes
    [dim]$[/dim] boa nodes --json | jq '[.nodes[].price_per_hour] | add'
    """
    with connect() as client:
        found = client.node_list()
    if json:
        emit_json({"nodes": found["nodes"]})
        return
    out = console()
    if not found["nodes"]:
        out.print("no nodes: none are rented until jobs need them")
        return
    named = any(node["address"] not in HERE for node in found["nodes"])
    rows = []
    for node in found["nodes"]:
        jobs = [f"{part['job']} ({part['gpus']})" for part in node["held"]]
        more = f" and {len(jobs) - MOST_JOBS} more" if len(jobs) > MOST_JOBS else ""
        rows.append(
            (
                str(node["id"]),
                *([escape(node["address"]) or "–"] if named else []),
                escape(f"{node['gpus']}×{node['gpu_type']}"),
                str(node["used_gpus"]),
                node["state"],
                rate(node["price_per_hour"]),
                ago(found["now"], node["billed_from"] or node["requested_at"]),
                (", ".join(jobs[:MOST_JOBS]) + more) or "–",
                escape(node["why"]) or "–",
            )
        )
    where = ("at",) if named else ()
    columns = ("node", *where, "GPUs", "in use", "state", "price", "since", "jobs", "why")
    cut, drop = (*where, "GPUs", "jobs", "why"), ("why", "since", *where)
    out.print(listing(columns, rows, out.width, right=("in use", "price"), cut=cut, drop=drop))
    used = sum(node["used_gpus"] for node in found["nodes"])
    total = sum(node["gpus"] for node in found["nodes"])
    price = sum(node["price_per_hour"] for node in found["nodes"])
    out.print(f"\n{used} of {total} GPUs in use, {rate(price)}")
