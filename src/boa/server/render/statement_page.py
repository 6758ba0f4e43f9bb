"""A statement as one page to print: no scripts, nothing fetched, every name escaped."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from boa.amounts import percent
from boa.api.reports import Statement, StatementAmounts, StatementDay, StatementPayer

HELD, IDLE, BOOTING = "#0072B2", "#E69F00", "#9ca3af"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 190, 64, 12, 26
"""Sizes of the chart, in its own units, with room for its labels."""
TICKS = 4
NOBODYS = "–"
CSS = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 14px/1.45 Inter, "Helvetica Neue", Arial, "Liberation Sans", sans-serif;
  color: #222; background: #fff; max-width: 60rem; margin: 2rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p { margin: .3rem 0; color: #4b5563; }
.progress { display: inline-block; margin-left: .6rem; padding: .1rem .6rem; font-size: .85rem;
  border: 1px solid #b45309; color: #92400e; border-radius: 1rem; vertical-align: middle; }
dl { display: flex; flex-wrap: wrap; gap: .4rem 2.2rem; margin: 1.2rem 0 0; }
dt { color: #4b5563; font-size: .85rem; } dd { margin: 0; font-size: 1.25rem; font-weight: 600;
  font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: #4b5563; font-weight: 600; font-size: .85rem; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid #e5e7eb; overflow-wrap: anywhere; }
th.n, td.n { text-align: right; white-space: nowrap; overflow-wrap: normal; width: 6.2em; }
th:not(.n), td:not(.n) { min-width: 5rem; }
tfoot td { font-weight: 600; border-bottom: 0; border-top: 1.5px solid #222; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 11px; fill: #4b5563; }
.keys span { margin-right: 1.2rem; } .keys i { display: inline-block; width: .8em; height: .8em;
  margin-right: .35em; }
.rule { margin-top: 1.6rem; font-size: .85rem; }
.wide { overflow-x: auto; }
@page { size: A4; margin: 14mm; }
@media print {
  body { font-size: 10.5px; margin: 0; padding: 0; max-width: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  tr, svg, dl { break-inside: avoid; } h2 { break-after: avoid; } .wide { overflow: visible; }
  thead { display: table-header-group; } tfoot { display: table-row-group; }
}
"""


def as_page(found: Statement) -> str:
    month = datetime.fromtimestamp(found["since"], UTC)
    title = f"Statement for {month:%B %Y}"
    parts = [payer for payer in found["by_payer"] if payer["above"] is not None]
    sections = [
        _figures(found),
        "<h2>By day</h2>",
        _chart(found),
        _section("By team", "team", found["by_team"], found),
        _section("By class", "class", found["by_class"], found),
        _section("By user", "user", found["by_user"], found),
        _payers(found["by_payer"]) if parts else "",
        _lines(found),
        f'<p class="rule">{escape(found["rule"])} Days and months are UTC.</p>',
    ]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>{CSS}</style>
</head>
<body>
<h1>{escape(title)}{_progress(found)}</h1>
<p>BOA Constrictor: {escape(_period(found))}</p>
{"".join(sections)}
</body>
</html>
"""


def _progress(found: Statement) -> str:
    return "" if found["complete"] else ' <span class="progress">in progress</span>'


def _period(found: Statement) -> str:
    days = found["days_in_month"]
    if found["complete"]:
        return f"the whole month, {days} days (UTC)"
    until = datetime.fromtimestamp(found["until"], UTC)
    return f"up to {until:%Y-%m-%d %H:%M} UTC, of {days} days"


def _usd(amount: float) -> str:
    return f"${amount:,.2f}"


def _figures(found: Statement) -> str:
    share = found["total_usd"] / found["budget_usd"] if found["budget_usd"] else 0.0
    figures = (
        ("bill", _usd(found["total_usd"])),
        ("the month's budget", _usd(found["budget_usd"])),
        ("of the budget", percent(share)),
        ("held by jobs", _usd(found["held_usd"])),
        ("idle", _usd(found["idle_usd"])),
        ("booting", _usd(found["booting_usd"])),
        ("jobs", f"{found['jobs']:,}"),
        ("GPU-hours", f"{found['gpu_hours']:,.1f}"),
    )
    each = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(said)}</dd></div>" for name, said in figures
    )
    return f"<dl>{each}</dl>"


HEADS = ("jobs", "GPU-hours", "held", "idle", "booting", "total")


def _cells(of: StatementAmounts) -> list[str]:
    money = (of["held_usd"], of["idle_usd"], of["booting_usd"], of["total_usd"])
    return [f"{of['jobs']:,}", f"{of['gpu_hours']:,.1f}", *(_usd(amount) for amount in money)]


def _table(
    names: Sequence[str],
    heads: Sequence[str],
    rows: Sequence[tuple[Sequence[str | None], Sequence[str]]],
    foot: Sequence[str] = (),
) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    head += "".join(f'<th class="n">{escape(name)}</th>' for name in heads)
    body = "".join(f"<tr>{_row(named, said)}</tr>" for named, said in rows)
    total = _total(len(names), foot) if foot else ""
    tfoot = f"<tfoot><tr>{total}</tr></tfoot>" if foot else ""
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{tfoot}'
        "</table></div>"
    )


def _total(names: int, said: Sequence[str]) -> str:
    cells = "".join(f'<td class="n">{escape(text)}</td>' for text in said)
    return f'<td colspan="{names}">total</td>{cells}'


def _row(named: Sequence[str | None], said: Sequence[str]) -> str:
    texts = [NOBODYS if name is None else name for name in named]
    return "".join(f"<td>{escape(text) or NOBODYS}</td>" for text in texts) + "".join(
        f'<td class="n">{escape(text)}</td>' for text in said
    )


def _section(title: str, what: str, groups: Sequence[StatementAmounts], found: Statement) -> str:
    rows = [([str(group.get("name") or "") or None], _cells(group)) for group in groups]
    return f"<h2>{title}</h2>{_table((what,), HEADS, rows, _cells(found))}"


def _payers(payers: Sequence[StatementPayer]) -> str:
    rows = []
    for payer in payers:
        right = payer["budget_usd"]
        share = percent(payer["with_parts_usd"] / right) if right else NOBODYS
        said = (
            *(NOBODYS if right is None else _usd(right), _usd(payer["total_usd"])),
            *(_usd(payer["with_parts_usd"]), share),
        )
        rows.append(([payer["name"], payer["above"] or ""], said))
    heads = ("guaranteed", "its own", "with its parts", "of the guarantee")
    return f"<h2>By part of the budget</h2>{_table(('part', 'of'), heads, rows)}"


def _lines(found: Statement) -> str:
    rows = [
        ([line["payer"], line["team"], line["user"], line["job_class"]], _cells(line))
        for line in found["lines"]
    ]
    names = ("payer", "team", "user", "class")
    return f"<h2>Line by line</h2>{_table(names, HEADS, rows, _cells(found))}"


# The chart


def _chart(found: Statement) -> str:
    number = found["days_in_month"]
    days = {int(day["day"][-2:]): day for day in found["by_day"]}
    most = max((day["total_usd"] for day in days.values()), default=0.0)
    step = _step(most)
    top = step * max(1, -int(-most // step))
    high = HEIGHT - TOP - BOTTOM
    lines = []
    for tick in range(round(top / step) + 1):
        y = TOP + high * (1 - tick * step / top)
        said = f"${tick * step:,.2f}" if step < 1 else f"${tick * step:,.0f}"
        lines.append(
            f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>'
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{said}</text>'
        )
    wide = (WIDTH - LEFT) / number
    bars = [_bar(days[n], LEFT + (n - 1) * wide, wide, high / top) for n in sorted(days)]
    labels = [
        f'<text x="{LEFT + (n - 0.5) * wide:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{n}</text>'
        for n in range(1, number + 1)
        if n == 1 or n % 5 == 0
    ]
    keys = ((HELD, "held by jobs"), (IDLE, "idle"), (BOOTING, "booting"))
    legend = "".join(f'<span><i style="background:{c}"></i>{name}</span>' for c, name in keys)
    return (
        f'<p class="keys">{legend}</p>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Dollars by day">'
        f"{''.join(lines + bars + labels)}</svg>"
    )


def _bar(day: StatementDay, left: float, wide: float, per_usd: float) -> str:
    y, found = float(HEIGHT - BOTTOM), []
    title = f"<title>{day['day']}: {_usd(day['total_usd'])}</title>"
    parts = ((day["held_usd"], HELD), (day["idle_usd"], IDLE), (day["booting_usd"], BOOTING))
    for amount, colour in parts:
        high = amount * per_usd
        y -= high
        if high > 0:
            found.append(
                f'<rect x="{left + 0.1 * wide:.1f}" y="{y:.2f}" width="{0.8 * wide:.1f}" '
                f'height="{high:.2f}" fill="{colour}"/>'
            )
    return f"<g>{title}{''.join(found)}</g>"


def _step(most: float) -> float:
    """A round number of dollars, of which a few make the highest day."""
    least = max(most, 0.04) / TICKS
    size = 10.0 ** (len(f"{int(least)}") - 1) if least >= 1 else 0.01
    while True:
        for times in (1, 2, 5):
            if size * times >= least:
                return size * times
        size *= 10
