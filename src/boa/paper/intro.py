"""Figure 1: the same runs as in `frontier-pollux`, held against what the introduction says."""

from boa.paper.frontier import Frontiers

FRONTIERS = Frontiers(
    name="intro",
    where="Figure 1",
    setting="pollux",
    claim="up to 2× lower average JCT and 3× lower P95 than Pollux for a given budget",
    claimed_jct=2.0,
    claimed_p95=3.0,
    reference="reservation",
)
STUDY = FRONTIERS.study()
