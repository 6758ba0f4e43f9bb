"""Figures as one HTML file each: no server, no network, the numbers under the mouse."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from importlib import resources
from typing import Any

from boa.amounts import duration, percent
from boa.plots.curve import Curve, slower
from boa.plots.panels import Panels
from boa.plots.style import BLUE, GREEN, VERMILLION, gpu_colours

MOST = 200
"""Panels on one page; a plan of more classes shows those that spend most."""
ROWS = 60
"""Rows of the table under the frontier, which also serves readers without scripts."""


def frontier_page(curve: Curve) -> str:
    money = curve.money
    title = "What a budget buys: average JCT"
    said = (
        f"The exact frontier, from the cheapest plan ({money.rate(curve.cheapest)}) to the "
        f"fastest ({duration(curve.fastest_jct)})."
    )
    keys = [f'<i style="background:{BLUE}"></i>exact frontier']
    if curve.chosen is not None:
        chosen = f"{money.rate(curve.chosen.budget)}: {duration(curve.chosen.jct)}"
        keys.append(f'<i class="dot" style="background:{BLUE}"></i><b>{escape(chosen)}</b>')
    if curve.glue:
        ring = f'<i class="dot" style="border:2px solid {VERMILLION}"></i>'
        keys.append(f"{ring}Algorithm 1 of the paper, {escape(slower(curve))} slower")
    if curve.foretold:
        square = f'<i style="background:{GREEN}"></i>'
        keys.append(f"{square}foretold where nodes are billed: bill and JCT, simulated, 95 %")
    body = (
        f"{_legend(keys)}\n"
        '<svg id="chart" role="img" aria-label="Budget against average JCT"></svg>\n'
        f"<details><summary>As a table</summary>{_table(curve)}</details>"
    )
    data = {
        "counts_gpus": money.counts_gpus,
        "budgets": curve.budgets.tolist(),
        "jcts": curve.jcts.tolist(),
        "shadow_prices": curve.shadow_prices.tolist(),
        "cheapest": curve.cheapest,
        "fastest": curve.fastest,
        "fastest_jct": curve.fastest_jct,
        "chosen": None if curve.chosen is None else asdict(curve.chosen),
        "glue": [asdict(mark) for mark in curve.glue],
        "foretold": [asdict(mark) for mark in curve.foretold],
    }
    return _page(title, said, body, data, "frontier.js")


def width_page(panels: Panels) -> str:
    colours = gpu_colours(panels.gpus)
    keys = [f'<i style="background:{colours[gpu]}"></i>{escape(gpu)}' for gpu in panels.used]
    hidden = len(panels.panels) - MOST
    more = f" {hidden:,} smaller classes are not shown." if hidden > 0 else ""
    said = "GPUs by epoch; thicker lines carry more of the class's jobs." + more
    body = f'{_legend(keys)}\n<div class="panels" id="panels"></div>'
    data = {
        "colours": dict(colours),
        "panels": [asdict(panel) for panel in panels.panels[:MOST]],
    }
    return _page(panels.title, said, body, data, "widths.js")


def _page(title: str, said: str, body: str, data: dict[str, Any], script: str) -> str:
    # "<" never appears in the data, so that no name in it can end the script element.
    numbers = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{_asset("page.css")}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{escape(said)}</p>
{body}
<div id="tip" role="status"></div>
<noscript><p>The picture needs JavaScript, which is in this file; nothing is fetched.</p></noscript>
<script type="application/json" id="data">{numbers}</script>
<script>
{_asset("common.js")}</script>
<script>
{_asset(script)}</script>
</body>
</html>
"""


def _legend(keys: Sequence[str]) -> str:
    return f'<div class="legend">{"".join(f"<span>{key}</span>" for key in keys)}</div>'


def _asset(name: str) -> str:
    return resources.files("boa.plots").joinpath(name).read_text("utf-8")


def _table(curve: Curve) -> str:
    heads = ("budget", "average JCT", f"{curve.money.one_more} saves", "above the fastest")
    every = max(1, -(-len(curve.budgets) // ROWS))
    rows = []
    for n in range(0, len(curve.budgets), every):
        budget, jct = float(curve.budgets[n]), float(curve.jcts[n])
        cells = (
            curve.money.rate(budget),
            duration(jct),
            duration(jct - curve.jct_at(budget + 1)),
            percent(max(0.0, jct / curve.fastest_jct - 1)),
        )
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
