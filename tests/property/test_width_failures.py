"""Whatever widths break a script, a job that works somewhere is not lost for having been put
elsewhere."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from boa.model.job import GpuLimits
from boa.model.runs import Launch
from live import Live, config, prior, profile, spec

WIDEST = 8
NET = profile("net", work=(900.0,) * 4, alpha=0.95, widest=WIDEST)


@settings(max_examples=12, deadline=None)
@given(
    good=st.sets(st.integers(2, WIDEST)),
    billing=st.sampled_from(["gpu", "node"]),
    known=st.booleans(),
    budget=st.sampled_from([4.0, 12.0, 30.0]),
)
def test_a_job_that_works_where_it_was_put_before_is_never_lost_elsewhere(
    good: set[int], billing: str, known: bool, budget: float
) -> None:
    """One job has shown that one GPU does; the next may not fail even once on its own account."""
    works = good | {1}

    def breaks(launch: Launch) -> str:
        return "" if launch.width in works else "CUDA out of memory"

    with TemporaryDirectory() as folder:
        priors = {"net": prior(NET, per_hour=2.0)} if known else {}
        live = Live(
            config(Path(folder), billing=billing, budget=budget, priors=priors), {"net": NET}
        )
        live.engine.report_s = 60.0
        live.engine.breaks = breaks
        live.submit(spec("net", epochs=4, gpus=GpuLimits(max=1)))
        live.advance(300.0)
        jobs = [
            live.submit(spec("net", epochs=4, retries=0, gpus=GpuLimits(max=WIDEST)))
            for _ in range(2)
        ]
        live.finish()
        for job in map(live.job, jobs):
            assert (job.state, job.failures) == ("succeeded", 0), job.reason
            assert {place.width for place in job.worked} <= works
        live.close()
