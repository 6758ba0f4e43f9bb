"""Reports say what was done, and never get in the way of training."""

import math
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest

from boa import train
from boa.train import Progress, sender, session
from boa.train.session import Session
from reporting import Service
from training import run_alone

MakeSession = Callable[..., Session]


def _until_asked(service: Service) -> None:
    deadline = time.monotonic() + 60
    while not service.tokens:
        assert time.monotonic() < deadline, "nobody has sent anything"
        time.sleep(0.005)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeSession]:
    """A session as a process with these variables would have it."""
    begun: list[Session] = []

    def make(**environment: object) -> Session:
        for name, value in environment.items():
            monkeypatch.setenv(name, str(value))
        new = Session()
        begun.append(new)
        monkeypatch.setattr(session, "session", lambda: new)
        return new

    yield make
    for old in begun:
        old.close()


@pytest.fixture
def patiently_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last report gets its second of this machine's, though others use it too."""
    monkeypatch.setattr(sender, "CLOSING_S", 60.0)


def test_increments_are_added_up_and_sent_in_full(service: Service, begin: MakeSession) -> None:
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_TOKEN="t", BOA_ATTEMPT=4, BOA_REPORT_EVERY_S=0)
    train.report(samples=10, step=1, loss=2.5, accuracy=0.5)
    service.wait_for(1)
    train.report(samples=5, step=2)
    (first, second) = service.wait_for(2)
    assert second.pop("uptime_s") > first.pop("uptime_s") > 0
    assert first == {
        "attempt": 4,
        "epoch": 0,
        "progress": 10.0,
        "units": 10.0,
        "step": 1,
        "loss": 2.5,
        "metrics": {"accuracy": 0.5},
    }
    assert second == {**first, "progress": 15.0, "units": 15.0, "step": 2}
    assert service.tokens == {"Bearer t"}
    assert service.connections == 1


def test_progress_is_the_unit_where_it_is_given(begin: MakeSession) -> None:
    now = begin()
    train.report(samples=1000, progress=2.5)
    train.report(progress=1)
    assert (now.at.progress, now.units) == (3.5, 3.5)


def test_an_epoch_begins_at_zero_and_the_units_of_the_attempt_go_on(begin: MakeSession) -> None:
    now = begin()
    train.report(samples=10)
    train.epoch(1)
    train.report(samples=4)
    assert (now.at, now.units) == (Progress(1, 4.0, 0), 14.0)
    train.report(samples=3, epoch=2)
    assert (now.at, now.units) == (Progress(2, 3.0, 0), 17.0)
    train.epoch(2)
    assert now.at.progress == 3.0


def test_an_epoch_is_told_at_once_though_reports_are_told_seldom(
    service: Service, begin: MakeSession
) -> None:
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=3600)
    train.report(samples=1)
    service.wait_for(1)
    train.report(samples=1)
    train.epoch(1)
    told = service.wait_for(2)[1]
    assert (told["epoch"], told["progress"], told["units"]) == (1, 0.0, 2.0)


@pytest.mark.usefixtures("patiently_closed")
def test_of_many_reports_the_newest_is_sent(service: Service, begin: MakeSession) -> None:
    now = begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=3600)
    for step in range(1, 1001):
        train.report(samples=1, step=step)
    now.close()
    assert service.reports[-1]["step"] == 1000
    assert len(service.reports) <= 3


def test_uptime_is_in_the_services_seconds(service: Service, begin: MakeSession) -> None:
    begin(BOA_REPORT_URL=service.url, BOA_SPEED=1000)
    train.report(samples=1)
    assert service.wait_for(1)[0]["uptime_s"] > 100  # this process is older than 0.1 s


def test_what_is_no_finite_number_is_left_out(service: Service, begin: MakeSession) -> None:
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=0)
    train.report(samples=5, step=1, loss=1.0, good=1)
    service.wait_for(1)
    train.report(
        samples=math.nan,
        step="many",
        loss=math.inf,
        epoch=object(),
        good=math.nan,
        bad=[1, 2],
        none=None,
    )
    train.report(samples=-3)
    told = service.wait_for(2)[-1]
    assert (told["units"], told["step"], told["loss"], told["metrics"]) == (5.0, None, None, {})


def test_metrics_are_kept_up_to_a_number(begin: MakeSession) -> None:
    now = begin()
    train.report(**{f"m{n}": n for n in range(1000)})
    assert len(now.metrics) == session.MOST_METRICS


def test_only_rank_0_is_heard(service: Service, begin: MakeSession) -> None:
    now = begin(BOA_REPORT_URL=service.url, RANK=1, BOA_REPORT_EVERY_S=0)
    train.report(samples=1)
    now.close()
    assert service.reports == []


def test_names_of_metrics_that_the_service_would_refuse_are_left_out(begin: MakeSession) -> None:
    now = begin()
    train.report(**{"n" * session.LONGEST_NAME: 1, "n" * (session.LONGEST_NAME + 1): 2})
    assert list(now.metrics) == ["n" * session.LONGEST_NAME]


# The end of a rescaling


@pytest.mark.usefixtures("patiently_closed")
def test_that_training_begins_is_told_at_once_and_not_left_out_for_a_newer_report(
    service: Service, begin: MakeSession
) -> None:
    now = begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=3600)
    session.resume_at(Progress(2, 30.0, 7))
    session.ready()
    for _ in range(100):
        train.report(progress=1)
    session.ready()  # too late: it says nothing
    now.close()
    assert service.reports[0]["units"] == 0
    assert [service.reports[0][name] for name in ("epoch", "progress", "step")] == [2, 30.0, 7]
    assert service.reports[-1]["units"] == 100
    assert len(service.reports) <= 3


def test_ends_of_epochs_are_told_once_the_service_is_back_with_their_own_figures(
    service: Service, begin: MakeSession
) -> None:
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=0)
    service.status = 503
    train.report(samples=1, loss=2.0, acc=0.5)
    _until_asked(service)
    train.epoch(1)
    train.report(samples=1, loss=float("nan"))
    train.epoch(2)
    service.status = 200
    train.report(samples=1, loss=1.0)
    told = next(one for count in (1, 2, 3) for one in service.wait_for(count) if "ends" in one)
    assert told["ends"] == [
        {"epoch": 1, "values": {"loss": 2.0, "acc": 0.5}},
        {"epoch": 2, "values": {"loss": None, "acc": 0.5}},
    ]
    count = len(service.reports)
    train.report(samples=1)
    assert "ends" not in service.wait_for(count + 1)[-1]


def test_a_service_that_knows_no_ends_of_epochs_gets_the_report_without(
    service: Service, begin: MakeSession
) -> None:
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=0)
    service.knows_ends = False
    train.report(samples=1, loss=2.0)
    service.wait_for(1)
    train.epoch(1)
    assert service.wait_for(2)[1]["epoch"] == 1
    assert "ends" not in service.reports[1]


def test_that_training_begins_is_told_before_anything_newer_even_if_that_fails_at_first(
    service: Service, begin: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "RETRY_S", 0.05)
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=0)
    service.status = 503
    session.ready()
    _until_asked(service)
    train.report(progress=1)
    service.status = 200
    assert [told["units"] for told in service.wait_for(2)] == [0, 1]


def test_that_training_has_begun_long_ago_is_not_told_any_more(
    service: Service, begin: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "KEPT_S", 0.1)
    monkeypatch.setattr(sender, "RETRY_S", 0.2)
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=0)
    service.status = 503
    session.ready()
    _until_asked(service)
    service.status = 200
    train.report(progress=1)
    assert [told["units"] for told in service.wait_for(1)] == [1]


def test_what_the_service_heard_before_training_began_is_no_reason_to_wait(
    service: Service, begin: MakeSession
) -> None:
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=3600)
    train.epoch(1)
    service.wait_for(1)
    session.ready()
    assert service.wait_for(2)[1]["epoch"] == 1


def test_parts_of_a_rescaling_go_with_every_report_in_the_services_seconds(
    service: Service, begin: MakeSession
) -> None:
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=0, BOA_SPEED=10)
    train.report(progress=0)
    assert "rescale" not in service.wait_for(1)[0]
    session.rescaled({"stop": 0.5, "save": math.nan, "start": -1.0, "coffee": 3.0})
    session.ready()
    assert service.wait_for(2)[1]["rescale"] == {"stop": 5.0}
    session.rescaled({"first_step": 0.25})
    train.report(progress=1)
    assert service.wait_for(3)[2]["rescale"] == {"stop": 5.0, "first_step": 2.5}


# Servers that are away


def _listening_but_silent() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@pytest.mark.parametrize("trouble", ["dead", "hanging", "failing", "not even a server"])
def test_a_report_returns_at_once_whatever_the_server_does(
    trouble: str, service: Service, begin: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "TIMEOUT_S", 0.3)
    service.status = 500
    with _listening_but_silent() as silent:
        port = silent.getsockname()[1]
        urls = {
            "dead": "http://127.0.0.1:9/report",
            "hanging": f"http://127.0.0.1:{port}/report",
            "failing": service.url,
            "not even a server": "nonsense:nothing",
        }
        now = begin(BOA_REPORT_URL=urls[trouble], BOA_REPORT_EVERY_S=0)
        took = []
        for step in range(1000):
            began = time.perf_counter()
            train.report(samples=1, step=step)
            took.append(time.perf_counter() - began)
        assert median(took) < 0.0005, "though a busy machine may hold up some of them"
        now.close()
    assert now.units == 1000


@pytest.mark.parametrize("status", [503, 429, 408])
def test_when_the_server_is_back_it_hears_the_newest(
    service: Service, begin: MakeSession, status: int
) -> None:
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=0.01)
    service.status = status
    train.report(samples=7)
    _until_asked(service)
    service.status = 200
    assert service.wait_for(1)[0]["units"] == 7.0


def test_a_report_that_the_server_refuses_is_not_sent_again(
    service: Service, begin: MakeSession
) -> None:
    now = begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=0)
    service.status = 404
    train.report(samples=7)
    _until_asked(service)
    service.status = 200
    train.report(samples=1)
    assert [told["units"] for told in service.wait_for(1)] == [8.0]
    now.close()
    assert len(service.reports) == 1


def test_what_was_reported_last_is_sent_before_the_process_ends(service: Service) -> None:
    run_alone(
        "from boa.train import sender; sender.CLOSING_S = 60\n"  # the machine may be busy
        "train.report(samples=1)\nfor n in range(99): train.report(samples=1)\nsys.exit(0)",
        BOA_REPORT_URL=service.url,
        BOA_REPORT_EVERY_S="3600",
    )
    assert service.reports[-1]["units"] == 100.0


def test_the_end_of_a_process_waits_for_a_silent_server_a_second_at_most() -> None:
    with _listening_but_silent() as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        script = """
import atexit, time
from boa.train import sender
sender.TIMEOUT_S = 60
atexit.register(lambda: print(time.monotonic() - began))  # runs after ours
train.report(samples=1)
time.sleep(0.1)
began = time.monotonic()
"""
        assert sender.CLOSING_S <= 1.0
        assert float(run_alone(script, BOA_REPORT_URL=url)) < 30, "that, not the time-out, ends it"


def test_what_a_stop_would_cost_is_reported_where_a_script_says_it(
    service: Service, begin: MakeSession, tmp_path: Path
) -> None:
    done = tmp_path / "done"
    begin(BOA_REPORT_URL=service.url, BOA_REPORT_EVERY_S=0, BOA_SPEED=10, BOA_DONE=done)
    train.report(samples=1)
    (first,) = service.wait_for(1)
    assert not {"total", "saves", "saved_s", "done"} & set(first), "older services know no such"
    session.total(900)
    session.saves()
    session.saved(ago_s=0.0)
    second = service.wait_for(2)[1]
    assert (second["total"], second["saves"]) == (900, True)
    assert second["saved_s"] == pytest.approx(second["uptime_s"], abs=10)
    session.total(None)
    session.saved(ago_s=1e9)
    third = service.wait_for(3)[2]
    assert "total" not in third, "it was taken back"
    assert third["saved_s"] == 0
    assert not done.exists()
    session.done()
    session.done()
    assert service.wait_for(4)[3]["done"] is True
    assert done.exists()
