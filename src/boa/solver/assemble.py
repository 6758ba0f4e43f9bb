"""Points of the classes' frontiers, turned into a plan that a person or a scheduler reads."""

from collections import defaultdict
from collections.abc import Sequence

from boa.model.plan import ClassPlan, Plan, Route, Variant
from boa.solver.chain import Point
from boa.solver.tables import Tables


def plan_of(tables: Tables, points: Sequence[Point]) -> Plan:
    """The plan that a point of every class's frontier stands for."""
    shares = [[(share, v.row, v.states.tolist()) for share, v in point.mix] for point in points]
    return plan_of_states(tables, shares)


def plan_of_states(
    tables: Tables, classes: Sequence[Sequence[tuple[float, int, Sequence[int]]]]
) -> Plan:
    """The plan in which each class runs (share, row, state per epoch) sequences."""
    plans = []
    for job_class, parts in zip(tables.workload.classes, classes, strict=True):
        variants = []
        for share, row_index, states in sorted(parts, key=lambda part: -part[0]):
            row = tables.rows[row_index]
            used = states[: len(job_class.epochs)]
            types = tuple(row.gpu_types[s] for s in used)
            variants.append(Variant(share, types, tuple(row.widths[s] for s in used)))
        plans.append(ClassPlan(name=job_class.name, variants=tuple(variants)))
    if tables.rules.routing == "epoch":
        plans = [routed_by_epoch(p) for p in plans]
    return Plan(tuple(plans))


def routed_by_epoch(plan: ClassPlan) -> ClassPlan:
    """The same plan as shares per epoch: without rescaling, only these matter."""
    epochs: list[tuple[Route, ...]] = []
    for j in range(len(plan.variants[0].widths)):
        shares: dict[tuple[str, float], float] = defaultdict(float)
        for variant in plan.variants:
            shares[variant.gpu_types[j], variant.widths[j]] += variant.share
        epochs.append(tuple(Route(share, gpu, k) for (gpu, k), share in shares.items()))
    return ClassPlan(name=plan.name, routes=tuple(epochs))
