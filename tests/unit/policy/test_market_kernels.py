"""The market's C kernels against their NumPy twins, and what both hold to."""

import os
import shutil
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from boa.model.cluster import Allocation, JobView
from boa.model.job_spec import GpuLimits
from boa.model.kept_rows import KeptRows
from boa.model.speedup import Amdahl, Floats, Power
from boa.model.workload import Epoch, GpuType, JobClass, Workload
from boa.policy.market import clearing, commitments, worth
from boa.policy.market import prospects as prospecting
from boa.policy.market.clearing import Cleared, cleared, cleared_in_python, gained
from boa.policy.market.facts import Columns, Facts, KeptFacts
from boa.policy.market.prospects import Prospects, prospects, prospects_in_python
from boa.policy.market.standings import (
    advanced_in_python,
    ends_in_python,
    later,
    standings_of,
)
from boa.policy.market.worth import Worth, Worths

KINDS = ("A", "B", "C")
compiled_only = pytest.mark.skipif(
    not clearing.COMPILED, reason="without a C compiler there is only NumPy"
)


class Nothing:
    def rates(self, gpu: str, epoch: int) -> Floats | None:
        return None


def workload(rng: Generator, kinds: int, classes: int = 3) -> Workload:
    types = {
        name: GpuType(name=name, price=float(rng.uniform(0.5, 3.0)), gpus_per_node=4)
        for name in KINDS[:kinds]
    }
    curves = (Amdahl, Power)
    found = tuple(
        JobClass(
            name=f"class{i}",
            arrivals_per_hour=float(rng.uniform(1, 10)),
            rescale_s=float(rng.choice([0.0, 2.0, 60.0])),
            max_gpus=int(rng.integers(1, 20)),
            weight=float(rng.uniform(0.5, 2.0)),
            max_jct_s=1000.0 if i == 2 else None,
            epochs=tuple(
                Epoch(
                    work=float(rng.uniform(10, 600)),
                    speedups={
                        gpu: curves[i % 2](float(rng.uniform(0.4, 0.99)), float(rng.uniform(1, 3)))
                        for gpu in types
                    },
                )
                for _ in range(int(rng.integers(1, 9)))
            ),
        )
        for i in range(classes)
    )
    return Workload(gpu_types=types, classes=found)


def views(rng: Generator, worths: Mapping[str, Worth], count: int) -> list[JobView]:
    found = []
    for n in range(count):
        name = str(rng.choice([*worths, "unknown"]))
        known = worths.get(name)
        states = (("A", 1),) if known is None else known.course.states
        gpu, width = states[int(rng.integers(len(states)))]
        limits = GpuLimits(min=1, max=int(rng.integers(1, 20))) if rng.random() < 0.3 else None
        found.append(
            JobView(
                id=str(n),
                job_class=name,
                arrival=float(n),
                serial=n,
                epoch=int(rng.integers(10)),
                left=float(rng.uniform(0, 1)),
                prediction=Nothing(),
                allocation=Allocation(gpu, ((n, width),)) if rng.random() < 0.6 else None,
                resumes_in=float(rng.choice([0.0, 1.0, 100.0])),
                limits=limits,
            )
        )
    return found


def known(seed: int, kinds: int, jobs: int = 30) -> tuple[list[JobView], Mapping[str, Worth]]:
    rng = default_rng(seed)
    worths = Worths(workload(rng, kinds))(float(rng.uniform(1, 3000)))
    return views(rng, worths, jobs), worths


def market(seed: int, kinds: int, jobs: int = 30) -> Prospects:
    return prospects(standings_of(*known(seed, kinds, jobs)), 60.0)


def test_all_kernels_are_there_where_there_is_a_c_compiler() -> None:
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    built = {clearing.COMPILED, worth.COMPILED, prospecting.COMPILED}
    if not os.environ.get("BOA_PURE_PYTHON"):
        assert built == {shutil.which(compiler) is not None}


@compiled_only
@pytest.mark.parametrize("seed", range(10))
def test_the_value_to_go_is_the_same_to_the_last_digit(seed: int) -> None:
    for found in known(seed, kinds=2)[1].values():
        afters, dollars = worth._to_go_in_python(found.course, found.values)
        assert np.array_equal(found.afters, afters)
        assert np.array_equal(found.dollars, dollars)


@compiled_only
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("horizon_s", [1.0, 60.0, 4000.0, 1e7])
def test_gains_are_the_same_to_the_last_digit(seed: int, horizon_s: float) -> None:
    standings = standings_of(*known(seed, kinds=2))
    one, other = prospects(standings, horizon_s), prospects_in_python(standings, horizon_s)
    assert np.array_equal(one.gains, other.gains)
    assert np.array_equal(one.elsewhere, other.elsewhere)


@compiled_only
@pytest.mark.parametrize("seed", range(10))
def test_gains_of_jobs_that_a_stop_costs_work_are_the_same_to_the_last_digit(seed: int) -> None:
    standings, rng = standings_of(*known(seed, kinds=2)), default_rng(seed)
    lost = rng.choice([0.0, 20.0, 500.0], len(standings.held))
    standings, extra = replace(standings, lost=lost), rng.uniform(0, 9, len(lost))
    one, other = (of(standings, 60.0, extra) for of in (prospects, prospects_in_python))
    assert np.array_equal(one.gains, other.gains)
    assert np.array_equal(one.elsewhere, other.elsewhere)


@compiled_only
@pytest.mark.parametrize("seed", range(10))
def test_what_is_to_go_is_the_same_to_the_last_digit(seed: int) -> None:
    standings, rng = standings_of(*known(seed, kinds=2)), default_rng(seed)
    assert np.array_equal(standings.ends_in, ends_in_python(standings))
    resumes = rng.choice([0.0, 30.0, 500.0], len(standings.held))
    dollars = commitments._to_go(standings, resumes)
    assert np.array_equal(dollars, commitments.to_go_in_python(standings, resumes))


@pytest.mark.parametrize("gains_of", [prospects, prospects_in_python])
def test_a_type_that_an_epoch_cannot_run_on_is_of_no_use_however_long_a_job_waits(
    gains_of: Callable[..., Prospects],
) -> None:
    types = {name: GpuType(name=name, price=1.0, gpus_per_node=4) for name in ("A", "B")}
    both = {"A": Power(0.9), "B": Power(0.9)}
    first = JobClass(
        name="class0",
        arrivals_per_hour=1.0,
        epochs=(Epoch(work=100.0, speedups={"A": Power(0.9)}), Epoch(work=100.0, speedups=both)),
    )
    worths = Worths(Workload(gpu_types=types, classes=(first,)))(100.0)
    jobs = [
        JobView(
            id=str(n),
            job_class="class0",
            arrival=0.0,
            serial=n,
            epoch=n,
            left=1.0,
            prediction=Nothing(),
        )
        for n in range(2)
    ]
    found = gains_of(standings_of(jobs, worths), 60.0, np.full(2, 1e6))
    on_b = [n for n, (gpu, _) in enumerate(found.states[0]) if gpu == "B"]
    for gains in (found.gains, found.elsewhere):
        assert (gains[0, on_b] == prospecting.NO_USE).all()
        assert (gains[1, on_b] > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_elsewhere_is_what_jobs_gain_that_hold_nothing(seed: int) -> None:
    jobs, worths = known(seed, kinds=2)
    standings = standings_of(jobs, worths)
    nowhere = later(standings, {}, 0.0)
    assert np.array_equal(prospects(standings, 60.0).elsewhere, prospects(nowhere, 60.0).gains)


@compiled_only
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("seconds", [0.0, 30.0, 500.0, 1e6])
def test_jobs_are_as_far_later_to_the_last_digit(seed: int, seconds: float) -> None:
    standings = standings_of(*known(seed, kinds=2))
    given = {view.id: view.allocation for view in standings.views if view.allocation is not None}
    then = later(standings, given, seconds)
    epochs, left, pauses, ends = advanced_in_python(standings, seconds)
    assert {view.id for view in then.views} == {
        view.id for view, ended in zip(standings.views, ends, strict=True) if not ended
    }
    rows = [standings.jobs.index(job) for job in then.jobs]
    assert np.array_equal(then.epochs, epochs[rows])
    assert np.array_equal(then.left, left[rows])
    assert np.array_equal(then.pauses, pauses[rows])


@compiled_only
@pytest.mark.parametrize("kinds", [1, 2, 3])
@pytest.mark.parametrize("seed", range(15))
def test_a_market_clears_to_the_same_choices_and_prices(seed: int, kinds: int) -> None:
    found = market(seed, kinds, jobs=int(default_rng(seed).integers(1, 40)))
    for nodes in (0, 1, 2, 5, 20, 200):
        room: Floats = 4.0 * np.arange(nodes, nodes + kinds, dtype=np.float64)
        one, other = cleared(found, room), cleared_in_python(found, room)
        assert np.array_equal(one.chosen, other.chosen)
        assert np.array_equal(one.prices, other.prices)
        assert one.gain == pytest.approx(other.gain, rel=1e-12)


@pytest.mark.parametrize("found", [cleared, cleared_in_python])
def test_a_job_is_not_put_out_for_a_type_that_is_not_there(
    found: Callable[[Prospects, Floats], Cleared],
) -> None:
    """It would as soon have GPUs of A, of which there are none; of B it takes the fewest."""
    gains = np.array([[320.7, 337.3], [320.7, 330.6], [334.2, 338.8]])
    here = Prospects(
        jobs=("runs", "waits", "narrow"),
        gains=gains,
        elsewhere=gains,
        gpus=np.array([[2.0, 2.0], [2.0, 2.0], [1.0, 1.0]]),
        kinds=np.array([[0, 1]] * 3),
        held=np.array([1, -1, 1]),
        states=((("A", 2), ("B", 2)), (("A", 2), ("B", 2)), (("A", 1), ("B", 1))),
    )
    assert found(here, np.array([0.0, 4.0])).chosen.tolist() == [1, -1, 1]


@pytest.mark.parametrize("found", [cleared, cleared_in_python])
def test_in_less_than_no_room_nobody_is_given_anything(
    found: Callable[[Prospects, Floats], Cleared],
) -> None:
    assert (found(market(1, kinds=1), np.array([-4.0])).chosen == -1).all()


@pytest.mark.parametrize("kinds", [1, 3])
def test_rooms_that_are_asked_for_together_gain_what_each_gains(kinds: int) -> None:
    found = market(3, kinds)
    rooms = np.arange(0.0, 24.0, 2.0)[:, None] * np.ones(kinds)
    assert gained(found, rooms).tolist() == [cleared(found, room).gain for room in rooms]


@pytest.mark.parametrize("seed", range(5))
def test_nobody_is_given_more_than_there_is_or_what_its_user_forbids(seed: int) -> None:
    jobs, worths = known(seed, kinds=2)
    found = prospects(standings_of(jobs, worths), 60.0)
    room = np.array([8.0, 4.0])
    chosen = cleared(found, room).chosen
    limits = {job.id: job.limits for job in jobs}
    used = np.zeros(2)
    for row in np.flatnonzero(chosen >= 0):
        _, width = found.states[row][chosen[row]]
        used[found.kinds[row, chosen[row]]] += width
        allowed = limits[found.jobs[row]]
        assert allowed is None or width <= allowed.max
    assert (used <= room).all()


def test_worths_of_a_price_are_kept_while_a_few_others_are_asked_for() -> None:
    worths = Worths(workload(default_rng(0), kinds=1))
    one = worths(100.0)
    assert worths(200.0) is not one
    assert worths(100.0) is one


def test_whoever_has_just_been_given_gpus_gains_no_less_by_them_than_whoever_waits() -> None:
    """Though rescaling is believed to take longer since the plan was made: they would swap."""
    jobs, worths = known(1, kinds=2)
    late = [replace(job, resumes_in=1e4) for job in jobs]
    found = prospects(standings_of(late, worths), 60.0)
    rows = np.flatnonzero(found.held >= 0)
    held = found.held[rows]
    assert len(rows)
    assert np.array_equal(found.gains[rows, held], found.elsewhere[rows, held])


# Facts of jobs, which are kept from decision to decision


def _mask(columns: Columns) -> list[list[bool]]:
    return [] if columns.forbidden is None else columns.forbidden.tolist()


def same(found: Facts, anew: Facts) -> bool:
    arrays = ("rows", "order", "epochs", "held", "rescale_s", "gpus", "kinds")
    here, there = found.columns, anew.columns
    return (
        here.views == there.views
        and here.names == there.names
        and all(np.array_equal(getattr(here, name), getattr(there, name)) for name in arrays)
        and _mask(here) == _mask(there)
        and found.strangers == anew.strangers
        and found.others.views == anew.others.views
    )


def test_objects_are_found_again_where_they_were() -> None:
    rows, (a, b, c) = KeptRows(), (object(), object(), object())
    before = rows.before([a, b])
    assert before is not None
    assert before.tolist() == [-1, -1]
    assert rows.before([a, b]) is None
    before = rows.before([b, c, a])
    assert before is not None
    assert before.tolist() == [1, -1, 0]
    before = rows.before([])
    assert before is not None
    assert before.tolist() == []


@pytest.mark.parametrize("seed", range(5))
def test_facts_that_are_kept_are_those_of_the_views_that_are_shown(seed: int) -> None:
    jobs, worths = known(seed, kinds=2)
    rng, kept = default_rng(seed), KeptFacts()
    for _ in range(10):
        assert same(kept.of(jobs, worths), KeptFacts().of(jobs, worths))
        assert kept.of(jobs, worths) is kept.of(list(jobs), worths), "nothing is made anew"
        del jobs[int(rng.integers(len(jobs)))]
        changed = int(rng.integers(len(jobs)))
        jobs[changed] = replace(jobs[changed], allocation=None, limits=GpuLimits(min=3, max=3))
        jobs += views(rng, worths, 2)
    assert same(kept.of([], worths), KeptFacts().of([], worths))
