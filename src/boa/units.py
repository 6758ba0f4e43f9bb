"""Named units. Durations are seconds, money is US dollars, rates are per hour."""

from typing import TypeAlias

Seconds: TypeAlias = float
Usd: TypeAlias = float
UsdPerHour: TypeAlias = float
PerHour: TypeAlias = float
GpuName: TypeAlias = str

SECONDS_PER_HOUR = 3600.0
