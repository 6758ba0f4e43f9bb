"""Named units. Durations are seconds, money is US dollars, rates are per hour."""

from typing import TypeAlias

Seconds: TypeAlias = float
Usd: TypeAlias = float
UsdPerHour: TypeAlias = float
PerHour: TypeAlias = float
GpuName: TypeAlias = str

SECONDS_PER_HOUR = 3600.0
DAY_S: Seconds = 24 * SECONDS_PER_HOUR
LEAST_HISTORY_S: Seconds = SECONDS_PER_HOUR
"""History from which on spend is extrapolated, and compared with a budget: one node more or less
decides a shorter one."""


def wall_time(stamp: str | None) -> Seconds | None:
    """Seconds by the wall of a time such as 2026-11-17T12:00:00Z; None of what is no time."""
    from datetime import datetime  # which most commands do without

    if not stamp:
        return None
    try:
        return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return None
