"""The Python client, over a real socket."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boa.client import Client, Refused
from boa.client.api import PATIENCE_S
from boa.errors import BoaError, InputError
from boa.model.job import GpuLimits, JobSpec
from fakes import NOW, FakeService, locked
from learned import learned
from ports import held_port
from unit.server.routes.test_money import plan_state


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path)


@pytest.fixture
def client(service: FakeService) -> Iterator[Client]:
    with service.serving() as url, Client(url) as client:
        yield client


@contextmanager
def later(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    timer = threading.Timer(seconds, act)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_a_job_is_submitted_as_a_spec_or_as_a_mapping(client: Client) -> None:
    spec = JobSpec(job_class="bert", run=("python", "train.py"), gpus=GpuLimits(max=4))
    first = client.submit(spec)
    second = client.submit({"class": "bert", "run": ["python", "train.py"], "gpus": {"max": 4}})
    assert (first["id"], second["id"]) == ("1", "2")
    assert first["spec"] == second["spec"]


def test_jobs_are_listed_over_as_many_pages_as_it_takes(
    client: Client, service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boa.client.api.PAGE", 3)
    for n in range(8):
        service.submit("bert" if n % 2 else "resnet18")
    ids = [job["id"] for job in client.jobs()]
    assert ids == [str(n) for n in range(8, 0, -1)]
    assert [job["id"] for job in client.jobs(limit=4)] == ids[:4]
    assert [job["id"] for job in client.jobs(job_class="bert")] == ["8", "6", "4", "2"]
    service.control.end("8", "succeeded", 0)
    assert len(client.jobs()) == 7
    assert len(client.jobs(all=True)) == 8
    assert [job["id"] for job in client.jobs(job_class="bert", search="6")] == ["6"]
    assert len(client.jobs(states=["waiting", "running"])) == 7
    assert len(client.jobs(states=["waiting", "succeeded"])) == 8
    assert [job["id"] for job in client.live()["jobs"]] == [job["id"] for job in client.jobs()]


def test_a_job_can_be_looked_at_stopped_and_waited_for(
    client: Client, service: FakeService
) -> None:
    job = service.submit()
    assert client.job(job)["state"] == "waiting"
    with later(0.3, lambda: service.control.end(job, "failed", exit_code=3)):
        ended = client.wait(job, pause_s=0.05)
    assert (ended["state"], ended["exit_code"]) == ("failed", 3)
    other = service.submit()
    assert client.stop(other)["state"] == "stopped"


def test_cluster_money_and_plan(client: Client, service: FakeService) -> None:
    service.control.rent(1)
    service.control.plan = plan_state()
    service.control.documents = {"bert": learned("bert")}
    assert [node["id"] for node in client.nodes()] == [1]
    assert client.cost()["budget_per_hour"] == 14.0
    assert client.cost(by="day", since=NOW - 7200)["rows"][0]["day"] == "2026-09-21"
    assert client.set_budget(20.0, max_spend=40.0)["max_spend_per_hour"] == 40.0
    assert client.set_budget(20.0)["max_spend_per_hour"] == 40.0, "as it is"
    assert client.set_budget(20.0, max_spend=math.inf)["max_spend_per_hour"] is None
    cap_alone = client.set_budget(max_spend=30.0)
    assert (cap_alone["budget_per_hour"], cap_alone["max_spend_per_hour"]) == (20.0, 30.0)
    assert client.budget()["budget_per_hour"] == 20.0
    assert client.set_budget(math.inf)["budget_per_hour"] == 8.0, "the configured one"
    assert client.plan()["number"] == 3
    assert client.classes() == ["bert"]
    assert client.job_class("bert") == learned("bert")
    assert client.health()["status"] == "ok"


def test_the_server_s_errors_come_back_with_words_field_and_exit_code(
    client: Client, service: FakeService
) -> None:
    with pytest.raises(Refused) as refused:
        client.submit({"class": "a", "run": "true", "retries": -1})
    assert str(refused.value) == "retries: got -1; expected a whole number >= 0 and <= 1000"
    assert (refused.value.status, refused.value.exit_code) == (422, 2)
    assert refused.value.field == "retries"
    with pytest.raises(Refused, match="got '9'; expected the id of a job") as unknown:
        client.job("9")
    assert (unknown.value.status, unknown.value.exit_code) == (404, 2)
    service.control.busy = locked()
    with pytest.raises(Refused, match="database is locked") as busy:
        client.set_budget(3.0)
    assert (busy.value.status, busy.value.exit_code) == (503, 1)


@pytest.mark.parametrize("part", ["../health", "a/b", "", "x?y=1", "#", "1/stop", "é"])
def test_what_can_be_no_id_or_class_is_refused_before_it_becomes_part_of_a_path(part: str) -> None:
    with held_port() as port, Client(f"http://127.0.0.1:{port}") as client:
        for ask in (client.job, client.stop, client.logs, client.job_class):
            with pytest.raises(InputError) as refused:
                list(ask(part))
            assert refused.value.exit_code == 2


# Tokens


def test_the_token_comes_from_the_environment_or_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = FakeService(tmp_path, token="s3cret")
    monkeypatch.delenv("BOA_TOKEN", raising=False)
    with service.serving() as url:
        with Client(url) as client, pytest.raises(Refused, match="BOA_TOKEN") as refused:
            client.jobs()
        assert (refused.value.status, refused.value.exit_code) == (401, 2)
        with Client(url, token="s3cret") as client:
            assert client.jobs() == []
        monkeypatch.setenv("BOA_TOKEN", "s3cret")
        monkeypatch.setenv("BOA_SERVER", url + "/")
        with Client() as client:
            assert client.url == url
            assert client.jobs() == []


@pytest.mark.parametrize("token", ["a\nb", "schlüssel"])
def test_a_token_that_no_header_can_carry_is_refused_here(token: str) -> None:
    with pytest.raises(InputError, match="BOA_TOKEN"):
        Client(token=token)


# Streams


def test_a_log_comes_whole_in_part_or_as_it_grows(client: Client, service: FakeService) -> None:
    job = service.submit()
    service.engine.write(job, "one\ntwo — “ü”\n")
    assert "".join(client.logs(job)) == "one\ntwo — “ü”\n"
    assert "".join(client.logs(job, tail=1)) == "two — “ü”\n"
    pieces = client.logs(job, tail=0, follow=True)
    heard = threading.Event()

    def write() -> None:
        """Again and again: what is written before the client follows is old, too."""
        while not heard.wait(0.3):
            service.engine.write(job, "three\n")

    with later(0.0, write):
        got = next(pieces)
        heard.set()
    service.control.end(job, "succeeded", 0)
    assert set("".join([got, *pieces]).splitlines()) == {"three"}


def test_bytes_that_are_no_text_do_not_break_a_log(client: Client, service: FakeService) -> None:
    job = service.submit()
    service.engine.write(job, "")
    (service.folder / job / "1-0-1.log").write_bytes(b"a\xffb\xe2\x82")
    assert "".join(client.logs(job)) == "a\ufffdb\ufffd"


def test_a_log_goes_on_where_it_was_when_the_server_comes_back(
    service: FakeService, port: int
) -> None:
    job = service.submit()
    service.engine.write(job, "skipped\none\n")
    with service.serving(port) as url:
        client = Client(url)
        pieces = client.logs(job, tail=1, follow=True)
        assert next(pieces) == "one\n"
    service.engine.write(job, "two\n")

    def resume() -> None:
        with service.serving(port):
            ended.wait(300)

    ended = threading.Event()
    with later(0.8, resume):
        assert next(piece for piece in pieces if piece) == "two\n"
        service.engine.write(job, "three\n")
        service.control.end(job, "succeeded", 0)
        assert "".join(pieces) == "three\n"
        ended.set()
    client.close()


def test_events_come_in_order_and_none_is_lost_to_a_restart(
    service: FakeService, port: int
) -> None:
    service.control.tell("trouble", "1")
    with service.serving(port) as url:
        client = Client(url)
        events = client.events(after=0)
        assert next(events)["number"] == 1
    service.control.tell("trouble", "2")
    ended = threading.Event()

    def resume() -> None:
        with service.serving(port):
            ended.wait(300)

    with later(0.8, resume):
        assert next(events)["number"] == 2
        service.control.tell("trouble", "3", job="7")
        assert next(events)["job"] == "7"
        events.close()
        ended.set()
    client.close()


def test_events_from_now_on_leave_out_the_old_ones(client: Client, service: FakeService) -> None:
    service.control.tell("submitted", "…")
    events = client.events()
    heard = threading.Event()

    def tell() -> None:
        """Again and again: what is told before the client listens is old, too."""
        while not heard.wait(0.3):
            service.control.tell("started", "…")

    with later(0.0, tell):
        kind = next(events)["kind"]
        heard.set()
    assert kind == "started"
    events.close()


def test_patience_ends_when_a_server_stays_away(service: FakeService) -> None:
    job = service.submit()
    with service.serving() as url:
        client = Client(url)
        events = client.events(after=0, patience_s=0.2)
        next(events)
        pieces = client.logs(job, follow=True, patience_s=0.2)
        service.engine.write(job, "x")
        assert next(pieces) == "x"
    for stream in (events, pieces):
        began = time.monotonic()
        with pytest.raises(BoaError) as gone:
            list(stream)
        assert gone.value.exit_code == 4
        assert time.monotonic() - began < PATIENCE_S / 2
    client.close()


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", object()])
def test_what_json_cannot_say_is_one_error_of_the_input(client: Client, value: object) -> None:
    with pytest.raises(InputError, match="the body: is no JSON"):
        client.submit_sweep({"class": "net", "run": "train"}, {"lr": [value]})
    with pytest.raises(InputError, match="the body: is no JSON"):
        client.change("1", weight=value)


def test_a_body_that_is_too_large_is_told_as_that(client: Client) -> None:
    with pytest.raises(BoaError, match=r"the body.* too large") as wrong:
        client.submit({"class": "net", "run": "train", "key": "x" * 10_000_000})
    assert wrong.value.exit_code == 2
