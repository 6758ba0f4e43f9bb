"""Facts of every policy, once: what help texts, schemas, checks, docs and the dashboard say of it.

How a policy is made from its knobs stands in `boa.policy.registry`; a name that is only in one of
the two is an error there.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from boa.units import Seconds

Learning: TypeAlias = Literal["class", "job", "perfect", "service"]
"""Jobs of a class share what they learn; each learns alone; all know the truth; the service's own
profiler learns from what they report."""
Knob: TypeAlias = Literal["budget", "target", "nodes", "width", "knob"]
"""Figure that has to be given beside the name: a budget, an efficiency, a cluster, a width, or a
number that only this policy understands."""
ROUND_S: Seconds = 60.0
"""Between two rounds, unless somebody says otherwise."""
KNOB_NAMES: Mapping[Knob, str] = {
    "budget": "budget",
    "target": "target_efficiency",
    "nodes": "nodes",
    "width": "width",
    "knob": "knob",
}
"""Names of the knobs in files and answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFacts:
    """Facts of a policy, known before it is asked anything."""

    name: str
    title: str
    """In a figure's legend."""
    meaning: str
    """One line: what every job gets, and on which cluster."""
    knob: Knob | None
    knob_means: str = ""
    """Meaning of the number that only this policy understands."""
    knob_most: float = math.inf
    """Most that this number may be."""
    knob_values: tuple[float, ...] = ()
    """Values of that number to sweep over, unless somebody says otherwise."""
    also: tuple[Knob, ...] = ()
    """Knobs that it understands but does not need."""
    live: bool = False
    """`boa serve` takes it: it decides on the cluster's size, too, or has all nodes of a fixed one
    while there are jobs."""
    several_types: bool = False
    """Uses several GPU types; others would take no notice of a second one."""
    by_job: bool = False
    """Decides job by job, so it may be asked at events; others look at all jobs, in rounds."""
    interval_s: Seconds | None = ROUND_S
    """Between its rounds, unless somebody says otherwise; None: it acts at events."""
    learning: Learning = "class"
    """As in the system that it comes from, unless somebody says otherwise."""
    learns_alone: bool = True
    """Its jobs may start from nothing; others have to be known before they have run."""
    as_asked: bool = False
    """Jobs run on the GPUs that their users asked for, or not at all."""
    own_batch: bool = False
    """Jobs keep the batch size that their users asked for, whatever they run on."""
    takes_turns: bool = False
    """Shares a cluster in time, by a program with many solutions: a symmetric one may be asked
    for."""
    like_sia: bool = False
    """Jobs that learn alone start with one GPU of every type profiled, and predict no batch size
    above the one that their user asked for."""


def _rule(**facts: Any) -> PolicyFacts:
    """A rule for single jobs that rents what it likes: nobody queues."""
    same: dict[str, Any] = {
        "several_types": True,
        "by_job": True,
        "interval_s": None,
        "learns_alone": False,
    }
    return PolicyFacts(**same | facts)


def _gavel(**facts: Any) -> PolicyFacts:
    """Jobs take turns on a fixed cluster, at the widths and batch sizes that were asked for."""
    same: dict[str, Any] = {
        "knob": "nodes",
        "several_types": True,
        "interval_s": 360.0,
        "as_asked": True,
        "own_batch": True,
        "takes_turns": True,
    }
    return PolicyFacts(**same | facts)


_DEADLINE: Mapping[str, Any] = {
    "knob": "knob",
    "knob_means": "its deadline, in times of what it takes where it is cheapest",
    "knob_values": (0.1, 0.2, 0.3, 0.5, 0.8),
}

_ALL = (
    PolicyFacts(
        name="boa",
        title="BOA",
        meaning="the widths of the plan that is optimal for the budget; nobody queues",
        knob="budget",
        live=True,
        several_types=True,
        by_job=True,
        interval_s=None,
        learns_alone=False,
    ),
    PolicyFacts(
        name="fixed",
        title="The same width for all",
        meaning="the same width for every job, on as many nodes as that takes",
        knob="width",
        by_job=True,
        learning="job",
    ),
    PolicyFacts(
        name="pollux",
        title="Pollux",
        meaning="a fixed cluster, placed anew every round for the best goodput",
        knob="nodes",
        learning="job",
    ),
    PolicyFacts(
        name="pollux-autoscale",
        title="Pollux with autoscaling",
        meaning="Pollux, on a cluster that is held near an efficiency",
        knob="target",
        live=True,
    ),
    PolicyFacts(
        name="sia",
        title="Sia",
        meaning="a fixed cluster, shared out every round by an integer program",
        knob="nodes",
        several_types=True,
        learning="job",
        like_sia=True,
    ),
    PolicyFacts(
        name="sia-autoscale",
        title="Sia with autoscaling",
        meaning="Sia, on clusters that are each held near an efficiency",
        knob="target",
        live=True,
        several_types=True,
        like_sia=True,
    ),
    PolicyFacts(
        name="rubick",
        title="Rubick",
        meaning="a fixed cluster; GPUs go where throughput rises most",
        knob="nodes",
        learns_alone=False,
    ),
    PolicyFacts(
        name="rubick-autoscale",
        title="Rubick with autoscaling",
        meaning="Rubick, on a cluster that is held near an efficiency; nobody queues",
        knob="target",
        live=True,
        learns_alone=False,
    ),
    PolicyFacts(
        name="rubick-autoscale-by-base",
        title="Rubick, efficiency by base width",
        meaning="rubick-autoscale, with GPUs up to a job's base width counted as fully used",
        knob="target",
        learns_alone=False,
    ),
    PolicyFacts(
        name="rubick-autoscale-queueing",
        title="Rubick, letting jobs queue",
        meaning="rubick-autoscale, also on clusters that are too small for all jobs",
        knob="target",
        learns_alone=False,
    ),
    PolicyFacts(
        name="reservation",
        title="What users ask for",
        meaning="what each user asked for, on nodes that come and go, or on a fixed cluster",
        knob=None,
        also=("nodes",),
        several_types=True,
        as_asked=True,
    ),
    PolicyFacts(
        name="tiresias",
        title="Tiresias",
        meaning="a fixed cluster; who has had the least GPU time goes first",
        knob="nodes",
        live=True,
        several_types=True,
        as_asked=True,
        own_batch=True,
    ),
    PolicyFacts(
        name="optimus",
        title="Optimus",
        meaning="a fixed cluster; the next GPU to whoever saves most time by it",
        knob="nodes",
        own_batch=True,
    ),
    _gavel(
        name="gavel",
        title="Gavel",
        meaning="a fixed cluster, shared in time for the most progress in all",
        live=True,
    ),
    _gavel(
        name="gavel-maxmin",
        title="Gavel, fair",
        meaning="a fixed cluster, shared in time so that the worst-off job is best off",
    ),
    _gavel(
        name="themis",
        title="Themis",
        meaning="a fixed cluster, shared in time so that all jobs are late alike",
    ),
    PolicyFacts(
        name="optimus-goodput",
        title="Optimus with goodput",
        meaning="optimus, with batch sizes that are tuned and the time that is really left",
        knob="nodes",
        learns_alone=False,
    ),
    _rule(
        name="optimus-price",
        title="Optimus with a price",
        meaning="for every job the width at which its rest comes to least, time and money together",
        knob="knob",
        knob_means="seconds that a dollar is worth",
        knob_values=(30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0),
        live=True,
    ),
    _rule(
        name="efficiency",
        title="Efficiency of every job",
        meaning="every job on its widest width of at least this efficiency",
        knob="target",
        live=True,
    ),
    _rule(
        name="scavenger",
        title="Scavenger",
        meaning="every job at the knee of its own curve of time against cost",
        knob="knob",
        knob_means="weight of its time, beside that of its cost, 0 to 1; 0.5 is the knee",
        knob_most=1.0,
        knob_values=(0.1, 0.3, 0.5, 0.7, 0.9),
    ),
    _rule(
        name="elasticflow",
        title="ElasticFlow",
        meaning="every job on the narrowest width that meets its deadline, for life",
        several_types=False,
        **_DEADLINE,
    ),
    _rule(
        name="rubberband",
        title="RubberBand",
        meaning="every job by the cheapest plan of its stages that meets its deadline",
        **_DEADLINE,
    ),
    _rule(
        name="gavel-cost",
        title="Gavel, cheapest in time",
        meaning="every job on the GPUs that meet its deadline for the least money, for life",
        **_DEADLINE,
    ),
    PolicyFacts(
        name="hesrpt",
        title="heSRPT",
        meaning="a fixed cluster; shares by remaining size, the smallest job's the largest",
        knob="nodes",
        learns_alone=False,
    ),
    PolicyFacts(
        name="qssf",
        title="QSSF",
        meaning="a fixed cluster; what users ask for, the least predicted service first",
        knob="nodes",
        as_asked=True,
        own_batch=True,
    ),
    PolicyFacts(
        name="allox",
        title="AlloX",
        meaning="a fixed cluster; jobs matched to types and places in line, to their ends",
        knob="nodes",
        several_types=True,
        as_asked=True,
        own_batch=True,
    ),
    PolicyFacts(
        name="shockwave",
        title="Shockwave",
        meaning="a fixed cluster; rounds planned for the product of all jobs' progress",
        knob="nodes",
        interval_s=120.0,
        as_asked=True,
        own_batch=True,
    ),
)

POLICIES: Mapping[str, PolicyFacts] = {facts.name: facts for facts in _ALL}


def live_policies() -> tuple[str, ...]:
    """Names that a service may be set up with; the first is its default."""
    return tuple(name for name, facts in POLICIES.items() if facts.live)


def scheduled_policies() -> tuple[str, ...]:
    """Those of them that the service's scheduler can be simulated with under limits of its own: a
    fixed cluster has none."""
    return tuple(name for name in live_policies() if POLICIES[name].knob != "nodes")


def policies_with(knob: Knob | None) -> tuple[str, ...]:
    """Names of those that need this knob."""
    return tuple(name for name, facts in POLICIES.items() if facts.knob == knob)


def knob_meanings() -> str:
    """Policies with a number of their own, and what it is."""
    own = (facts for facts in POLICIES.values() if facts.knob == "knob")
    return "; ".join(f"{facts.name}: {facts.knob_means}" for facts in own)


def flag_of(knob: Knob) -> str:
    """Flag of a knob on the command line."""
    return "--" + KNOB_NAMES[knob].replace("_", "-")


def policy_table() -> str:
    """The facts as the table in `docs/concepts/policies.md`."""
    heads = ("policy", "needs", "GPU types", "asked", "learning", "live", "what jobs get")
    rows = [heads, ("---",) * len(heads), *(_row(facts) for facts in POLICIES.values())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(facts: PolicyFacts) -> tuple[str, ...]:
    asked = "at events" if facts.interval_s is None else f"every {facts.interval_s:g} s"
    return (
        f"`{facts.name}`",
        " or ".join(
            ["nothing" if facts.knob is None else f"`{flag_of(facts.knob)}`"]
            + [f"`{flag_of(knob)}`" for knob in facts.also]
        ),
        "several" if facts.several_types else "one",
        f"{asked}, or at events" if facts.by_job and facts.interval_s is not None else asked,
        facts.learning,
        "yes" if facts.live else "no",
        facts.meaning,
    )
