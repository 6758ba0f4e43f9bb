"""Jobs as policies see them: only GPU types that their users allow can be run on."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boa.model.job import GpuLimits
from boa.policy.rivals.sia_autoscale import SiaAutoscale
from boa.scheduler.decide.protection import Pressure
from boa.scheduler.decide.views import KeptViews, job_views
from boa.scheduler.learn.profiler import Profiler
from boa.scheduler.stop_cost import lost_s
from live import A100, T4, prior, profile, spec
from stored import job, running

TYPES = {"T4": T4, "A100": A100}
BOTH = profile("both", gpus={"T4": 1.0, "A100": 3.0})


def beliefs() -> Profiler:
    return Profiler(TYPES, {"both": prior(BOTH, 1.0)}, began=0.0)


def seen(types: tuple[str, ...]) -> dict[str, Any]:
    record = job(1, spec=spec("both", gpus=GpuLimits(max=16, types=types)))
    (view,) = job_views([record], beliefs(), TYPES, 200.0)
    return {gpu: view.prediction.rates(gpu, 0) for gpu in TYPES}


def test_a_type_that_its_user_does_not_allow_is_shown_as_one_it_cannot_run_on() -> None:
    rates = seen(("T4",))
    assert rates["T4"].max() > 0
    assert rates["A100"] is not None, "a type that nothing is known of might be tried"
    assert rates["A100"].shape == (2, 17)
    assert not rates["A100"].any()


def test_with_all_types_allowed_what_is_believed_is_shown_as_it_is() -> None:
    for types in ((), ("T4", "A100"), ("A100", "T4", "H100")):
        rates = seen(types)
        for gpu in TYPES:
            assert rates[gpu].max() > 0
            np.testing.assert_array_equal(rates[gpu], seen(())[gpu])


def test_two_jobs_of_a_class_may_be_allowed_different_types() -> None:
    records = [
        job(number, spec=spec("both", gpus=GpuLimits(max=16, types=(gpu,))))
        for number, gpu in enumerate(TYPES, start=1)
    ]
    for view, gpu in zip(job_views(records, beliefs(), TYPES, 900.0), TYPES, strict=True):
        runs_on = {other for other in TYPES if np.any(view.prediction.rates(other, 0))}
        assert runs_on == {gpu}


def test_in_rounds_nobody_gets_a_type_that_its_user_does_not_allow(lives: Any) -> None:
    live = lives(BOTH, gpu_types=TYPES, policy=SiaAutoscale(0.5))
    asked = {
        live.submit(replace(spec("both"), gpus=GpuLimits(max=16, types=(gpu,)))): gpu
        for gpu in ("T4", "A100", "T4")
    }
    for _ in range(5):
        live.advance(60.0, tick=60.0)
        for job_id, gpu in asked.items():
            given = live.job(job_id).allocation
            assert given is None or given.gpu == gpu
    live.finish()
    assert all(live.job(job_id).state == "succeeded" for job_id in asked)


@pytest.mark.parametrize("fields", [{}, {"preemptible": True}])
def test_the_work_that_a_silent_job_would_lose_grows_with_every_decision(
    fields: dict[str, Any],
) -> None:
    record, known, kept = running(1, spec=spec("both", **fields)), beliefs(), KeptViews()
    for now in (200.0, 260.0, 3800.0):
        (view,) = kept.of([record], known, TYPES, now, Pressure())
        assert view.lost_s == lost_s(record, record.run, now, saves=False) == now - 120.5
