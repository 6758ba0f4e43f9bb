"""Halving that judges as soon as it is certain keeps whom halving that waits for all keeps."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from boa.model.job import JobRecord, JobSpec
from boa.model.sweep import Halving, Sweep
from boa.scheduler.state import Draft, State
from boa.scheduler.terms import halving

EPOCHS = 9


def at_once(values: list[list[float]], sweep: Sweep) -> set[str]:
    """Who is left when all have come to every rung together."""
    left = list(sweep.jobs)
    for number, rung in enumerate(halving.rungs(sweep)):
        left.sort(key=lambda job: (values[int(job) - 1][rung], int(job)))
        left = left[: halving.places(sweep, number)]
    return set(left)


@given(st.data())
def test_in_whatever_order_jobs_get_on_the_same_are_left(data: st.DataObject) -> None:
    count, factor = data.draw(st.integers(1, 9)), data.draw(st.integers(2, 4))
    numbers = st.integers(0, 5).map(float)
    row = st.lists(numbers, min_size=EPOCHS + 1, max_size=EPOCHS + 1)
    values = data.draw(st.lists(row, min_size=count, max_size=count))
    jobs = tuple(str(n + 1) for n in range(count))
    rule = Halving(factor=factor)
    sweep = Sweep(
        id="s1", name="", job_class="a", made_at=0.0, jobs=jobs, epochs=EPOCHS, halving=rule
    )
    spec = JobSpec(job_class="a", run=("true",), epochs=EPOCHS)
    state = State(sweeps={"s1": sweep})
    for n, name in enumerate(jobs):
        state.jobs[name] = JobRecord(id=name, spec=spec, serial=n, submitted_at=0.0, sweep="s1")
    epochs = dict.fromkeys(jobs, 0)
    while state.jobs:
        moving = [job for job in state.jobs.values() if not job.parked]
        assert moving, "somebody can always go on"
        job = data.draw(st.sampled_from(sorted(moving, key=lambda job: int(job.id))))
        epochs[job.id] += 1
        draft = Draft(state, 0.0)
        _go_on(draft, job, epochs[job.id], values[int(job.id) - 1][epochs[job.id]])
        halving.look(draft)
        state = draft.state
    ended = draft.changed_sweeps["s1"]
    won = {name for name, how in ended.outcomes.items() if how == "succeeded"}
    assert won == at_once(values, sweep)


def _go_on(draft: Draft, job: JobRecord, epoch: int, loss: float) -> None:
    over = epoch == EPOCHS
    kept = job.loss if over else loss  # the last report was before
    done = "succeeded" if over else job.state
    draft.put_job(replace(job, epoch=epoch, loss=kept, state=done))
