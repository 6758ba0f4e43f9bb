"""Figure 5 (a, d): newTrace on T4s, against Pollux with autoscaling."""

from boa.paper.frontier import Frontiers

FRONTIERS = Frontiers(
    name="frontier-pollux",
    where="Figure 5 (a, d)",
    setting="pollux",
    claim="up to ~1.8× lower average JCT, ~1.7× lower P95, ~2× less budget (all settings)",
    claimed_jct=1.8,
    claimed_p95=1.7,
    claimed_budget=2.0,
    reference="reservation",
)
STUDY = FRONTIERS.study()
