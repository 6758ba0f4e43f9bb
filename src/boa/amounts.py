"""Money and time as people read them: the one style of the CLI, events, files and the page.

`web/src/format.ts` follows the same rules; `tests/data/amounts.json` has cases that both are
tested with.
"""

import math
from datetime import UTC, datetime

from boa.units import Seconds, Usd, UsdPerHour

LEAST_USD: Usd = 1e-6
"""Less is rounding of floats, not money."""
NONE = "–"
"""Stands where there is no figure."""
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400
_WHOLE = 2.0**53
"""From here on every float is a whole number."""
_MOST_DAYS = 100
"""Days from which on hours are left out."""


def dollars(amount: Usd) -> str:
    """Cents, and below a dollar two significant digits: $2,191.24, $0.31, $0.090, $0.0012."""
    if not math.isfinite(amount):
        return NONE
    size, digits = abs(amount), 2
    while size >= LEAST_USD and size * 10**digits < 9.95:
        digits += 1
    value = _rounded(size, digits)
    return f"{'−' if amount < 0 and value > 0 else ''}${value:,.{digits}f}"


def rate(per_hour: UsdPerHour) -> str:
    """USD per hour: $27.62/h."""
    return f"{dollars(per_hour)}/h"


def percent(share: float) -> str:
    """A share as a percentage: 34 %, 0.25 %; small ones keep two digits."""
    points = 100 * share
    if abs(points) < 0.01:
        return "0 %" if abs(points) < 1e-6 else "<0.01 %"
    return f"{points:.0f} %" if abs(points) >= 9.95 else f"{points:.2g} %"


def duration(seconds: Seconds) -> str:
    """1.5 ms, 34 ms, 0.19 s, 4.3 s, 12 s, 5.3 min, 1 h 12 min, 3 d 4 h."""
    if not math.isfinite(seconds):
        return NONE
    size = abs(seconds)
    words = _short(size) if size < 59.95 * _MINUTE_S else _long(size)
    return f"−{words}" if seconds < 0 and words != "0 s" else words


def _short(size: Seconds) -> str:
    """Less than an hour."""
    if size < 0.0005:
        return "0 s"
    if size < 0.0995:
        return f"{_trimmed(1000 * size, 1 if size < 0.00995 else 0)} ms"
    if size < 59.5:
        return f"{_trimmed(size, 2 if size < 0.995 else 1 if size < 9.95 else 0)} s"
    return f"{_trimmed(size / _MINUTE_S, 1)} min"


def _long(size: Seconds) -> str:
    """An hour or more, in two units."""
    minutes = int(_rounded(size / _MINUTE_S, 0))
    if minutes < _DAY_S // _MINUTE_S:
        return _two(minutes, 60, "h", "min")
    hours = int(_rounded(size / _HOUR_S, 0))
    return f"{hours // 24:,} d" if hours >= 24 * _MOST_DAYS else _two(hours, 24, "d", "h")


def _two(count: int, size: int, large: str, small: str) -> str:
    whole, rest = divmod(count, size)
    return f"{whole} {large} {rest} {small}" if rest else f"{whole} {large}"


def _rounded(value: float, digits: int) -> float:
    """Halves up, as in JavaScript: `round` takes the even neighbour."""
    scale: int = 10**digits
    if value * scale >= _WHOLE:
        return value
    return math.floor(value * scale + 0.5) / scale


def _trimmed(value: float, digits: int) -> str:
    text = f"{_rounded(value, digits):.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def days(since: Seconds, until: Seconds) -> str:
    """The UTC days from one moment to another: Nov 19–30, Nov 30, Nov 30–Dec 2."""
    first = datetime.fromtimestamp(since, UTC)
    last = datetime.fromtimestamp(max(until - 1.0, since), UTC)
    begin = f"{first:%b} {first.day}"
    if first.date() == last.date():
        return begin
    same = (first.year, first.month) == (last.year, last.month)
    return f"{begin}–{last.day}" if same else f"{begin}–{last:%b} {last.day}"
