"""Plain enumeration, independent of the solver: what small instances are held against."""

from itertools import product

import numpy as np

from boa.model import ClassPlan, JobClass, Plan, Variant, Workload
from boa.model.speedup import Floats
from boa.solver.objective import Rules, evaluate

Sequence = tuple[tuple[str, ...], tuple[int, ...]]


def sequences(workload: Workload, job_class: JobClass, rules: Rules) -> list[Sequence]:
    """Every sequence of (GPU type, width) that the class may run."""
    states = []
    for epoch in job_class.epochs:
        allowed = [
            (gpu, k)
            for gpu, curve in epoch.speedups.items()
            for k in range(max(job_class.min_on(gpu), curve.base), job_class.max_on(gpu) + 1)
        ]
        states.append(allowed)
    found = []
    for chosen in product(*states):
        types = tuple(gpu for gpu, _ in chosen)
        if rules.routing == "class" and len(set(types)) > 1:
            continue
        found.append((types, tuple(k for _, k in chosen)))
    return found


def outcomes(workload: Workload, rules: Rules) -> list[list[tuple[float, float, Sequence]]]:
    """(objective, spend, sequence) that each class would contribute, one list per class."""
    total = workload.weighted_arrivals_per_hour
    lists = []
    for job_class in workload.classes:
        alone = Workload(gpu_types=workload.gpu_types, classes=(job_class,))
        points = []
        for types, widths in sequences(workload, job_class, rules):
            plan = Plan((ClassPlan(name=job_class.name, variants=(Variant(1.0, types, widths),)),))
            got = evaluate(alone, plan, rules)
            share = job_class.weight * job_class.arrivals_per_hour / total
            points.append((share * got.average_jct, got.spend, (types, widths)))
        lists.append(points)
    return lists


def best_mixed(workload: Workload, rules: Rules, budget: float) -> float:
    """The optimum over mixtures: the largest Lagrangian bound over all candidate multipliers."""
    lists = [np.array([p[:2] for p in points]) for points in outcomes(workload, rules)]
    multipliers = {0.0}
    for points in lists:
        times, costs = points[:, 0], points[:, 1]
        rise = times[:, None] - times[None, :]
        run = costs[None, :] - costs[:, None]
        slopes = (rise[run > 1e-12] / run[run > 1e-12]).ravel()
        multipliers |= set(slopes[slopes > 0].tolist())
    mus = np.array(sorted(multipliers))
    bound = -mus * budget
    for points in lists:
        bound = bound + (points[:, :1] + mus * points[:, 1:]).min(axis=0)
    return float(bound.max())


def best_deterministic(workload: Workload, rules: Rules, budget: float) -> float:
    """The optimum over one sequence per class, every combination tried."""
    best = np.zeros((1, 2))
    for points in outcomes(workload, rules):
        own = np.array([p[:2] for p in points])
        best = (best[:, None, :] + own[None, :, :]).reshape(-1, 2)
        best = _undominated(best)
    affordable = best[best[:, 1] <= budget * (1 + 1e-12)]
    return float(affordable[:, 0].min())


def _undominated(points: Floats) -> Floats:
    ordered = points[np.lexsort((points[:, 0], points[:, 1]))]
    keep = np.concatenate([[True], ordered[1:, 0] < np.minimum.accumulate(ordered[:, 0])[:-1]])
    return np.asarray(ordered[keep])


def cheapest_spend(workload: Workload, rules: Rules) -> float:
    return sum(min(p[1] for p in points) for points in outcomes(workload, rules))
