"""What jobs and classes come to know of their speed, and what follows from it."""

from dataclasses import replace

import numpy as np
import pytest

from boa.catalogue.rates import typical_shape
from boa.goodput.measured import MeasuredTimes
from boa.goodput.timing import Curve
from boa.goodput.tuning import first_setting
from boa.model.cluster import Shape
from boa.sim.class_learner import ClassLearner, widths_tried
from boa.sim.learners import (
    Fits,
    JobLearner,
    PerfectLearner,
    TrueRates,
    noise_factors,
)
from boa.sim.physics import AdaptiveTruth
from simulations import ADAPTIVE, BATCHES, MODELS, adaptive, measured, planned

T4 = {"T4": 4}
SHAPES: list[Shape] = [(1,), (2,), (3,), (4,), (1, 1), (2, 2), (4, 1), (4, 4)]


def bumpy(name: str) -> AdaptiveTruth:
    """A class whose times no model fits: some widths are much slower than their neighbours."""
    smooth = measured(MODELS[name])
    counts = {
        nodes: {
            gpus: Curve(
                curve.local_batch,
                curve.step_s * (1.0 + 0.3 * ((nodes + gpus) % 3 == 0)),
                curve.accumulation_s,
            )
            for gpus, curve in by_gpus.items()
        }
        for nodes, by_gpus in smooth.counts.items()
    }
    return replace(adaptive(name, T4), timings={"T4": MeasuredTimes({}, counts)})


# A job that learns alone


def test_a_job_alone_knows_nothing_and_starts_at_the_base_batch() -> None:
    truth = bumpy("quick")
    learner = JobLearner(truth, Fits())
    assert learner.rates("T4", 0) is None, "so it is taken to scale perfectly"
    for gpus, shape in ((1, (1,)), (8, (4, 4))):
        fresh = JobLearner(truth, Fits())
        setting = first_setting(truth.limits["T4"], gpus)
        assert setting.total(gpus) == max(BATCHES[0], 8 * gpus)
        rate = truth.rate("T4", shape, setting, truth.seen(0, setting.total(gpus)).worth)
        assert fresh.pace("T4", shape, 0) == TrueRates(0, [rate])


def test_a_job_that_never_left_one_gpu_believes_that_synchronising_costs_nothing() -> None:
    learner = JobLearner(adaptive("patient", T4), Fits())
    learner.pace("T4", (1,), 0)
    alone = learner.rates("T4", 0)
    assert alone is not None
    assert alone[0, 1:5] == pytest.approx(alone[1, 1:5], rel=1e-6), "nor does the network"
    learner.pace("T4", (1, 1), 0)
    wiser = learner.rates("T4", 0)
    assert wiser is not None
    assert wiser[1, 2] < 0.8 * alone[1, 2]


@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_job_guesses_until_it_has_been_there(name: str) -> None:
    truth = adaptive(name, T4)
    learner = JobLearner(truth, Fits())
    errors = []
    for shape in [(1,), (2,), (4,), (4,), (4,)]:
        learner.pace("T4", shape, 0)
        rates = learner.rates("T4", 0)
        assert rates is not None
        errors.append(float(rates[0, 4] / truth.slowdown / truth.rates("T4")[0, 0, 4]) - 1.0)
    assert abs(errors[0]) > 0.1
    assert abs(errors[-1]) < 0.02


def test_a_job_speaks_of_one_epoch_at_a_time() -> None:
    pace = JobLearner(bumpy("quick"), Fits()).pace("T4", (2,), 1)
    assert (pace.first, pace.end) == (1, 2)


def test_a_profiled_job_knows_one_gpu_of_every_type() -> None:
    truth = adaptive("quick", {"T4": 4, "V100": 2})
    learner = JobLearner(truth, Fits(), profiled=True)
    t4, v100 = learner.rates("T4", 0), learner.rates("V100", 0)
    assert t4 is not None
    assert v100 is not None
    assert v100[0, 1] / t4[0, 1] == pytest.approx(1.7, rel=0.01)


def test_a_user_caps_what_a_job_predicts_but_not_what_it_runs_at() -> None:
    truth = bumpy("patient")
    learners = [JobLearner(truth, Fits(), batch_cap=cap) for cap in (None, 64)]
    paces = [[x.pace("T4", (4,), 2) for _ in range(4)][-1] for x in learners]
    assert paces[0] == paces[1]
    free, capped = (x.rates("T4", 2) for x in learners)
    assert free is not None
    assert capped is not None
    assert capped.shape[1] == 64 // 8 + 1, "no more GPUs than have samples to work on"
    assert capped[0, 4] < 0.95 * free[0, 4]


def test_a_rigid_job_keeps_its_batch_size() -> None:
    truth = bumpy("patient")
    learner = JobLearner(truth, Fits(), rigid_batch=128)
    for _ in range(3):
        for gpus in (1, 2, 4):
            pace = learner.pace("T4", (gpus,), 0)
            setting = first_setting(replace(truth.limits["T4"], max_local=128), gpus, 128)
            worth = truth.seen(0, 128).worth
            assert pace.rates == [truth.rate("T4", (gpus,), setting, worth)]


def test_jobs_that_saw_the_same_share_their_fits() -> None:
    truth, fits = bumpy("quick"), Fits()
    one, other = JobLearner(truth, fits), JobLearner(truth, fits)
    for learner in (one, other):
        for shape in SHAPES:
            learner.pace("T4", shape, 0)
    assert one.rates("T4", 0) is other.rates("T4", 0)


# A class that learns together


@pytest.mark.parametrize("name", ADAPTIVE)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_class_is_right_where_it_has_run(name: str, shape: Shape) -> None:
    learner = ClassLearner(bumpy(name))
    version = -1
    while learner.version != version:
        version = learner.version
        pace = learner.pace("T4", shape, 0)
        learner.refresh()
    row, width = int(len(shape) > 1), sum(shape)
    predicted = learner.table("T4")[:, row, width]
    assert predicted == pytest.approx(pace.rates, rel=1e-9)


@pytest.mark.parametrize("name", ADAPTIVE)
def test_one_earlier_job_has_shown_every_width_it_went_through(name: str) -> None:
    truth = bumpy(name)
    learner = ClassLearner(truth)
    for width in widths_tried(8):
        shape = typical_shape(width, 4, across=False)
        rate = learner.pace("T4", shape, 0).rates
        assert learner.table("T4")[:, int(width > 4), width] == pytest.approx(rate, rel=0.1)
        assert rate == pytest.approx(truth.best_on("T4", shape), rel=0.05)


def test_an_earlier_job_tries_two_widths_per_octave_and_the_widest() -> None:
    assert widths_tried(1) == [1]
    assert widths_tried(8) == [1, 2, 3, 4, 6, 8]
    assert widths_tried(20) == [1, 2, 3, 4, 6, 8, 12, 16, 20]


def test_the_version_changes_only_when_there_is_something_new() -> None:
    learner = ClassLearner(bumpy("quick"))
    assert learner.version == 1
    learner.refresh()
    assert learner.version == 1
    learner.pace("T4", (1, 1), 0)  # nobody has been across nodes with so few
    assert learner.version == 1
    learner.refresh()
    assert learner.version == 2
    learner.refresh()
    assert learner.version == 2


def test_more_gpus_than_a_node_has_cannot_be_on_one() -> None:
    rates = ClassLearner(bumpy("quick")).rates("T4", 0)
    assert rates is not None
    assert (rates[0, 5:] == 0).all()
    assert (rates[:, 1:5] > 0).all()
    assert (rates[1, 5:] > 0).all()
    assert (rates[:, 0] == 0).all()


def test_nothing_is_known_of_a_type_that_was_never_measured() -> None:
    assert ClassLearner(bumpy("quick")).rates("V100", 0) is None
    assert PerfectLearner(bumpy("quick")).rates("V100", 0) is None


# One that knows


@pytest.mark.parametrize("name", ADAPTIVE)
def test_perfect_knowledge_is_the_truth(name: str) -> None:
    truth = bumpy(name)
    learner = PerfectLearner(truth)
    assert (learner.table("T4") == truth.rates("T4")).all()
    for width in range(1, 9):
        for row in (0, 1) if 1 < width <= 4 else (int(width > 4),):
            shape = typical_shape(width, 4, across=row == 1)
            expected = truth.rates("T4")[:, row, width]
            assert learner.pace("T4", shape, 0).rates == pytest.approx(expected.tolist())
    learner.refresh()
    assert learner.version == 1


def test_perfect_knowledge_of_plans_is_the_truth_too() -> None:
    truth = planned("steady", T4)
    learner = PerfectLearner(truth)
    rates = learner.rates("T4", 0)
    assert rates is not None
    assert rates[0, [1, 2, 4]] == pytest.approx([1 / 2.0, 1 / 1.25, 1 / 0.8])
    assert learner.pace("T4", (2, 2), 0).rates == [1.0]


def test_noise_changes_what_is_believed_and_not_what_is() -> None:
    truth = bumpy("quick")
    noise = noise_factors(0.3, {"T4": 8}, 1, "quick")
    noisy = PerfectLearner(truth, noise)
    off = noisy.table("T4")[:, 0, 1:5] / truth.rates("T4")[:, 0, 1:5]
    assert off == pytest.approx(np.tile(noise["T4"][1:5], (truth.epochs, 1)))
    assert noisy.pace("T4", (4,), 0) == PerfectLearner(truth).pace("T4", (4,), 0)


def test_noise_is_reproducible_and_everybody_has_their_own() -> None:
    def of(seed: int, name: str, gpu: str = "T4") -> tuple[float, ...]:
        return tuple(noise_factors(0.3, {"T4": 8, "V100": 8}, seed, name)[gpu])

    assert of(1, "quick") == of(1, "quick")
    assert of(1, "quick") == tuple(noise_factors(0.3, {"T4": 1}, 1, "quick")["T4"])
    others = [of(1, "quick"), of(2, "quick"), of(1, "patient"), of(1, "quick", "V100")]
    assert len(set(others)) == 4


def test_noise_has_the_spread_that_was_asked_for() -> None:
    for size in (0.1, 0.5):
        logs = np.log([noise_factors(size, {"T4": 64}, s, "quick")["T4"] for s in range(100)])
        assert logs.std() == pytest.approx(size, rel=0.03)
        assert logs.mean() == pytest.approx(0.0, abs=0.03 * size)
    assert (noise_factors(0.0, {"T4": 64}, 0, "quick")["T4"] == 1).all()
