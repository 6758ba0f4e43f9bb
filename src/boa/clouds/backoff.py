"""Not to ask again at once for what was refused."""

from boa.backoff import doubled
from boa.units import GpuName, Seconds

FIRST_S: Seconds = 30.0
MOST_S: Seconds = 900.0


class Backoff:
    """Per GPU type: 30 s after the first refusal, twice as long after each that follows."""

    def __init__(self) -> None:
        self._waits: dict[GpuName, tuple[Seconds, int, str]] = {}
        """Until when, after how many refusals in a row, and why."""

    def waiting(self, gpu: GpuName, now: Seconds) -> str | None:
        """Why it is not to be asked for yet."""
        until, _, why = self._waits.get(gpu, (now, 0, ""))
        return why if now < until else None

    def refused(self, gpu: GpuName, now: Seconds, why: str) -> None:
        _, before, _ = self._waits.get(gpu, (now, 0, ""))
        wait = doubled(FIRST_S, before + 1, MOST_S)
        self._waits[gpu] = (now + wait, before + 1, why)

    def had(self, gpu: GpuName) -> None:
        self._waits.pop(gpu, None)
