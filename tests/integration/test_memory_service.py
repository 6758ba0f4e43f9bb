"""A service that is killed anywhere in a hand-over through memory: the next one goes on with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forked_writers import writers
from gates import IN_WRITERS, Gates, points
from handed_over import GRACE_S, Job, Service, goes_on, service_of_one_run
from keeping import until

POINTS = points(
    ["reserving", "copying", "publishing", "published", "loading", "writing"],
    ["copying", "published", "writing"],
)


@pytest.fixture(scope="module")
def asked() -> Iterator[str]:
    """Where all writers come from."""
    with writers() as asked:
        yield asked


@pytest.fixture
def job(tmp_path: Path, asked: str) -> Iterator[Job]:
    job = Job(tmp_path, "job")
    job.attempt = 1  # no run of it has left anything on the disk
    yield job
    Service(tmp_path, asked).close()


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_the_next_service_goes_on_with_what_was_left(
    job: Job, tmp_path: Path, asked: str, point: str
) -> None:
    gates, left = Gates(job.folder / "gates"), 0
    gates.folder.mkdir(parents=True)
    if point == "loading":
        before = Service(tmp_path, asked)
        gates.shut("writing")
        left = job.whole(before)["step"]
        before.engine.close()
    if point in ("reserving", "loading"):
        gates.shut(point)
    with service_of_one_run(job, tmp_path, asked) as (service, stop):
        if point not in ("reserving", "loading"):
            until(job.is_ready)
            gates.shut(point)
            stop()
        gates.held(point)
        service.kill()
        service.wait()
        after = Service(tmp_path, asked)
        (key,) = after.engine.runs()
        if point in IN_WRITERS:
            assert after.end(key) == 0
            left = job.left() or job.checkpoints()[0]
            key = job.start(after)  # from memory, while the writer waits
            assert job.until_said(after, "began")["step"] == left
        gates.open(point)
        gates.open("writing")
        if point == "loading":
            assert job.until_said(after, "began")["step"] == left
        if point in ("reserving", "loading", *IN_WRITERS):
            job.until_said(after, "ready")
            after.engine.stop(key, GRACE_S)
        assert after.end(key) == 0
        said = job.said("ended")
        assert said is not None
        assert said["step"] > left
        goes_on(job, after, said["step"])
        after.close()
