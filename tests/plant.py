"""A little plant that a budget is paced by: jobs that come, hold GPUs, and end.

Jobs come as a Poisson process and hold GPUs for a time of their own. The plan in force when a job
comes fixes what it costs per hour for its whole life, which is how the spend lags behind; it
believes in an arrival rate that is wrong by a factor, and idle and booting nodes cost extra.
"""

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from boa.scheduler.money.ledger import NOTHING, Bill
from boa.scheduler.money.pacing import Pace, advanced, begun, effective, with_budget

HORIZON_H, LOOK_H = 24.0, 0.25
BUDGET = 40.0


def always(hour: float) -> float:
    return 1.0


@dataclass
class Plant:
    misjudged: float = 1.0
    """Jobs that really come, per job that the plan expects."""
    overhead: float = 0.0
    """Idle and provisioning, per dollar that jobs hold."""
    duration_h: float = 3.0
    expected_per_hour: float = 12.0
    demand: Callable[[float], float] = always
    """By the hour, of what really comes."""
    cheapest: float = 0.0
    """No plan spends less."""
    seed: int = 0
    pace: Pace = field(default_factory=lambda: begun(BUDGET, NOTHING, 0.0))
    planned: list[float] = field(default_factory=list, repr=False)
    """By look, over the budget of that time."""
    totals: list[float] = field(default_factory=lambda: [0.0], repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._ends: list[tuple[float, float]] = []
        self._per_hour = 0.0

    def run(self, hours: float) -> "Plant":
        for _ in range(round(hours / LOOK_H)):
            plan = max(effective(self.pace, HORIZON_H), self.cheapest)
            self.planned.append(plan / self.pace.budget)
            now = len(self.planned) * LOOK_H
            spent = self._spend_until(now, plan / (self.expected_per_hour * self.duration_h))
            self.totals.append(self.totals[-1] + spent * (1 + self.overhead))
            self.pace = advanced(self.pace, self.bill, plan, now * 3600, HORIZON_H)
        return self

    def _spend_until(self, now: float, per_hour: float) -> float:
        """What jobs hold between the last look and this one."""
        spent, mean = 0.0, self.expected_per_hour * self.misjudged * self.demand(now - LOOK_H)
        arrival = now - LOOK_H + self._wait(mean)
        while arrival < now:
            end = arrival + self._random.expovariate(1 / self.duration_h)
            heapq.heappush(self._ends, (end, per_hour))
            self._per_hour += per_hour
            spent -= per_hour * (arrival - (now - LOOK_H))
            arrival += self._wait(mean)
        spent += self._per_hour * LOOK_H
        while self._ends and self._ends[0][0] <= now:
            end, rate = heapq.heappop(self._ends)
            spent -= rate * (now - end)
            self._per_hour -= rate
        return spent

    def _wait(self, mean: float) -> float:
        return self._random.expovariate(mean) if mean > 0 else math.inf

    def set_budget(self, budget: float) -> None:
        now = len(self.planned) * LOOK_H * 3600
        self.pace = with_budget(self.pace, budget, self.bill, now)

    @property
    def bill(self) -> Bill:
        total = self.totals[-1]
        jobs = total / (1 + self.overhead)
        return Bill(total=total, jobs=jobs, idle=total - jobs, provisioning=0.0)

    @property
    def average(self) -> float:
        """Spend per hour since the budget was set, over the budget."""
        hours = (self.pace.at - self.pace.since) / 3600
        return (self.pace.total - self.pace.spent_before) / hours / self.pace.budget

    def spend_per_hour(self, first_hour: float, last_hour: float) -> float:
        """Over the budget."""
        first, last = round(first_hour / LOOK_H), round(last_hour / LOOK_H)
        spent = self.totals[last] - self.totals[first]
        return spent / (last_hour - first_hour) / self.pace.budget

    def dearest_day(self, after_hour: float) -> float:
        last = len(self.planned) * LOOK_H
        starts = range(round(after_hour), round(last - 24))
        return max(self.spend_per_hour(start, start + 24) for start in starts)
