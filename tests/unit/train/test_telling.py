"""Reports of a script on its checkpoints, its total and its end."""

import json
from pathlib import Path

import pytest

from boa import train
from boa.train import session
from boa.train.session import Session
from boa.train.stopping import stop_requested as unseen_stop_requested
from reporting import Service
from unit.train.test_reports import MakeSession, begin, patiently_closed, service

assert begin  # fixtures
assert patiently_closed
assert service


@pytest.fixture
def job(service: Service, begin: MakeSession, tmp_path: Path, patiently_closed: None) -> Session:
    home = tmp_path / "checkpoints"
    return begin(
        BOA_REPORT_URL=service.url,
        BOA_REPORT_EVERY_S=0,
        BOA_CHECKPOINT_DIR=home,
        BOA_DONE=tmp_path / "done",
        BOA_EPOCHS=2,
    )


def test_a_script_that_asks_whether_to_stop_saves_from_the_first_time_that_it_asks(
    service: Service, job: Session
) -> None:
    train.report(samples=1)
    service.wait_for(1)
    assert "saves" not in service.reports[0]
    train.stop_requested()
    service.wait_for(2)
    train.report(samples=1)
    service.wait_for(3)
    assert [report["saves"] for report in service.reports[1:]] == [True, True]


def test_a_script_that_says_that_it_does_not_save_is_not_contradicted_when_it_asks(
    service: Service, job: Session
) -> None:
    session.saves(False)
    train.stop_requested()
    train.report(samples=1)
    assert service.wait_for(1)[0]["saves"] is False


def test_asking_before_any_work_sends_nothing_by_itself(service: Service, job: Session) -> None:
    train.stop_requested()
    train.report(samples=1)
    service.wait_for(1)
    assert (service.reports[0]["units"], service.reports[0]["saves"]) == (1, True)


def test_a_script_that_only_hears_of_a_stop_does_not_claim_to_save(
    service: Service, job: Session
) -> None:
    train.context()
    unseen_stop_requested()
    train.report(samples=1)
    assert "saves" not in service.wait_for(1)[0]


def test_a_new_checkpoint_says_when_its_contents_were_taken(service: Service, job: Session) -> None:
    train.report(samples=1)
    assert job.saved_s is None
    before = job.age()
    with train.new_checkpoint() as folder:
        began = job.age()
        (folder / "model").write_text("weights")
    assert job.saved_s is not None
    assert before <= job.saved_s <= began + 0.01
    while "saved_s" not in service.reports[-1:][0] if service.reports else True:
        service.wait_for(len(service.reports) + 1)
    assert service.reports[-1]["saved_s"] == job.saved_s


def test_a_checkpoint_that_failed_is_none(job: Session) -> None:
    with pytest.raises(ValueError, match="full"), train.new_checkpoint():
        raise ValueError("full")
    assert job.saved_s is None


def test_one_that_resumed_says_so_and_one_that_found_nothing_does_not(
    job: Session, begin: MakeSession
) -> None:
    train.resume()
    assert job.saved_s is None
    with train.new_checkpoint():
        pass
    again = begin(BOA_ATTEMPT=2)
    train.resume()
    assert again.saved_s == 0.0


def test_the_scripts_own_total_goes_with_its_reports(service: Service, job: Session) -> None:
    train.total(5000)
    train.report(samples=1)
    assert service.wait_for(1)[0]["total"] == 5000


def test_a_script_whose_epochs_are_over_is_done_and_leaves_the_file(
    service: Service, job: Session, tmp_path: Path
) -> None:
    for _ in train.epochs():
        train.report(samples=1)
        assert not (tmp_path / "done").exists()
    assert (tmp_path / "done").exists()
    job.close()
    assert service.reports[-1]["done"] is True


def test_one_that_leaves_its_epochs_early_is_not_done(job: Session, tmp_path: Path) -> None:
    for _ in train.epochs():
        train.report(samples=1)
        break
    assert not job.done
    assert not (tmp_path / "done").exists()


def test_who_goes_on_with_more_work_is_not_done_after_all(
    service: Service, job: Session, tmp_path: Path
) -> None:
    train.done()
    service.wait_for(1)
    train.report(accuracy=0.5)  # which is no work
    assert service.wait_for(2)[1]["done"] is True
    train.report(samples=1)
    assert "done" not in service.wait_for(3)[2]
    assert not (tmp_path / "done").exists()


def test_the_last_report_before_the_end_says_that_the_work_is_done(
    service: Service, job: Session, begin: MakeSession
) -> None:
    slow = begin(BOA_REPORT_EVERY_S=3600)
    train.report(samples=1)
    service.wait_for(1)
    train.report(samples=1)  # which waits for its turn
    train.done()
    slow.close()
    assert service.reports[-1]["done"] is True
    assert service.reports[-1]["units"] == 2


def test_an_older_service_gets_the_report_without_what_it_does_not_know(
    service: Service, job: Session
) -> None:
    service.unknown = (b'"saves"', b'"total"', b'"done"', b'"saved_s"')
    train.stop_requested()
    train.total(10)
    train.report(samples=1)
    (report,) = service.wait_for(1)
    assert report["units"] == 1
    assert not json.dumps(report).count("saves")
