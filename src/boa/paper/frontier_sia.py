"""Figure 5 (c, f): newTrace on T4s, V100s and A100s at list prices, against autoscaled Sia."""

from boa.paper.frontier import Frontiers

FRONTIERS = Frontiers(
    name="frontier-sia",
    where="Figure 5 (c, f)",
    setting="sia",
    claim="up to ~1.8× lower average JCT, ~1.7× lower P95, ~2× less budget (all settings); "
    "near $135/h ~4 rescalings per job against <1",
    claimed_jct=1.8,
    claimed_p95=1.7,
    claimed_budget=2.0,
    rescalings_at=135.0,
)
STUDY = FRONTIERS.study()
