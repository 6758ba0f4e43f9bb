"""Sia's integer program against enumeration: never above the capacity, never far from the best."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.errors import BoaError
from boa.policy.rivals.assignment import Assignment, Bools, assign
from boa.solver.tables import Ints

COSTS = st.one_of(
    st.integers(5, 130).map(lambda cents: cents / 100.0),  # rounded as Sia rounds: ties
    st.floats(0.01, 2.0),
    st.just(float("inf")),
)


@st.composite
def problems(draw: st.DrawFn) -> Assignment:
    jobs, configurations = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    types = draw(st.integers(1, 3))
    rows = [[draw(COSTS) for _ in range(configurations)] for _ in range(jobs)]
    return Assignment(
        costs=np.array(rows),
        gpus=np.array([draw(st.integers(1, 9)) for _ in range(configurations)]),
        kinds=np.array([draw(st.integers(0, types - 1)) for _ in range(configurations)]),
        capacity=np.array([draw(st.integers(0, 14)) for _ in range(types)]),
        unallocated=draw(st.sampled_from([1.1, 0.7])),
    )


def used(problem: Assignment, chosen: Ints) -> Ints:
    some = chosen[chosen >= 0]
    counts = np.bincount(problem.kinds[some], problem.gpus[some], len(problem.capacity))
    return counts.astype(np.intp)


def total(problem: Assignment, chosen: Ints) -> float:
    return sum(
        problem.unallocated if option < 0 else float(problem.costs[job, option])
        for job, option in enumerate(chosen)
    )


def enumerated(problem: Assignment, required: Bools) -> float:
    """The least total over every way to choose; infinite if the required jobs do not fit."""
    jobs, configurations = problem.costs.shape
    best = float("inf")
    for options in itertools.product(range(-1, configurations), repeat=jobs):
        chosen = np.array(options)
        if (chosen[required] >= 0).all() and (used(problem, chosen) <= problem.capacity).all():
            best = min(best, total(problem, chosen))
    return best


@settings(deadline=None)
@given(problem=problems())
def test_the_total_is_the_enumerated_optimum(problem: Assignment) -> None:
    chosen = assign(problem)
    nobody = np.zeros(len(problem.costs), dtype=bool)
    assert total(problem, chosen) <= enumerated(problem, nobody) * (1.0 + 1e-4) + 1e-12


@settings(deadline=None)
@given(problem=problems())
def test_capacity_is_kept_and_only_allowed_configurations_chosen(problem: Assignment) -> None:
    chosen = assign(problem)
    assert chosen.shape == (len(problem.costs),)
    assert ((chosen >= -1) & (chosen < problem.costs.shape[1])).all()
    assert (used(problem, chosen) <= problem.capacity).all()
    assert np.isfinite(total(problem, chosen))


@settings(deadline=None)
@given(problem=problems(), data=st.data())
def test_required_jobs_are_served_at_the_least_total(
    problem: Assignment, data: st.DataObject
) -> None:
    jobs = len(problem.costs)
    required = np.array(data.draw(st.lists(st.booleans(), min_size=jobs, max_size=jobs)))
    best = enumerated(problem, required)
    if not np.isfinite(best):
        with pytest.raises(BoaError):
            assign(problem, required=required)
        return
    chosen = assign(problem, required=required)
    assert (chosen[required] >= 0).all()
    assert (used(problem, chosen) <= problem.capacity).all()
    assert total(problem, chosen) <= best * (1.0 + 1e-4) + 1e-12


@settings(deadline=None)
@given(problem=problems())
def test_equal_problems_get_equal_answers(problem: Assignment) -> None:
    assert np.array_equal(assign(problem), assign(problem))
