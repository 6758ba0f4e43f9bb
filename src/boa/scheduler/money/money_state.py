"""Money at a moment: the budget, what was spent, and on what."""

from dataclasses import dataclass

from boa.model.workload import Billing
from boa.units import Seconds, Usd, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyState:
    budget: UsdPerHour
    max_spend: UsdPerHour | None
    effective: UsdPerHour
    """USD per hour that is planned with, so that the average comes out at the budget."""
    since: Seconds
    """Beginning of averages: the first start of the service, or the last change of the budget."""
    spent: Usd
    """USD spent since then, everything included."""
    total: Usd
    """Ever; the three parts add up to it."""
    jobs: Usd
    idle: Usd
    provisioning: Usd
    """USD from the beginning of the charge until ready, and from release until gone."""
    now_per_hour: UsdPerHour
    """USD per hour of everything that is rented at this moment."""
    billing: Billing = "gpu"
    """Count that the budget is for: whole nodes, or GPUs that jobs hold."""
    gain: float = 1.0
    """Dollars on the bill per dollar planned, as measured: nodes are idle and boot."""

    def average(self, now: Seconds) -> UsdPerHour:
        hours = (now - self.since) / 3600
        return self.spent / hours if hours > 0 else 0.0

    def planned_with(self, budget: UsdPerHour) -> UsdPerHour:
        """USD per hour that plans would be made with if this became the budget now."""
        wanted = budget / self.gain
        return wanted if self.max_spend is None else min(wanted, self.max_spend)
