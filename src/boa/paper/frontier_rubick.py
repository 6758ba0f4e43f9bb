"""Figure 5 (b, e): Rubick's trace on A800s. There is one draw of it, so arrivals are redrawn.

Draw 0 is the published trace; draws 1 to 5 are the same jobs in another order, at arrival times
with the trace's own C².
"""

from boa.paper.frontier import Frontiers

FRONTIERS = Frontiers(
    name="frontier-rubick",
    where="Figure 5 (b, e)",
    setting="rubick",
    claim="up to ~1.8× lower average JCT, ~1.7× lower P95, ~2× less budget (all settings)",
    claimed_jct=1.8,
    claimed_p95=1.7,
    claimed_budget=2.0,
)
STUDY = FRONTIERS.study()
