"""Reports of running jobs: taken with the run's own token, checked, passed on."""

import hmac
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from boa.model.records import Report
from boa.runtime.report_tokens import LIFE_S, report_token
from documents import REPORT as BODY
from fakes import NOW, SECRET, FakeService


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    service = FakeService(tmp_path, token="the service's own")
    headers = {"Authorization": "Bearer the service's own"}
    body = {"class": "resnet18", "run": "true"}
    assert service.ask("POST", "/api/v1/jobs", json=body, headers=headers).status_code == 201
    service.control.run("1")
    return service


def send(
    service: FakeService, body: Any, *, job: str = "1", token: str | None = None, **options: Any
) -> httpx.Response:
    token = report_token(SECRET, job, 1) if token is None else token
    headers = {"Authorization": f"Bearer {token}"}
    given = options or {"json": body}
    return service.ask("POST", f"/api/v1/jobs/{job}/report", headers=headers, **given)


def test_a_report_reaches_the_control_loop_as_it_was_said(service: FakeService) -> None:
    answer = send(service, BODY)
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert service.control.reports == [
        Report(
            job="1",
            attempt=1,
            uptime_s=61.5,
            epoch=2,
            progress=51200.0,
            units=151200.5,
            step=400,
            loss=2.31,
            metrics={"accuracy": 0.41},
            rescale={"start": 1.5, "first_step": 0.0},
        )
    ]


def test_what_only_some_jobs_know_may_be_left_out(service: FakeService) -> None:
    body = {key: BODY[key] for key in ("attempt", "uptime_s", "epoch", "progress", "units")}
    nothing = dict.fromkeys(("step", "loss", "metrics", "rescale"))
    assert send(service, body).status_code == 200
    assert send(service, {**body, **nothing}).status_code == 200
    (first, second) = service.control.reports
    assert first == second
    assert (first.step, first.loss, first.metrics, first.rescale) == (None, None, {}, {})


def test_a_loss_that_diverged_does_not_lose_the_report(service: FakeService) -> None:
    said = (
        b'{"attempt": 1, "uptime_s": 1, "epoch": 0, "progress": 3, "units": 3, "loss": NaN, '
        b'"metrics": {"norm": Infinity, "accuracy": 0.1}, '
        b'"rescale": {"stop": NaN, "save": -1, "start": null, "load": 2}}'
    )
    assert send(service, None, content=said).status_code == 200
    (report,) = service.control.reports
    assert (report.loss, report.metrics, report.units) == (None, {"accuracy": 0.1}, 3.0)
    assert report.rescale == {"load": 2.0}


@pytest.mark.parametrize(
    "token",
    [
        "",
        "wrong",
        "the service's own",
        report_token(SECRET, "1", 2),
        report_token(SECRET, "2", 1),
        report_token(b"another secret", "1", 1),
    ],
    ids=["none", "wrong", "the service's own", "another run's", "another job's", "forged"],
)
def test_only_the_run_s_own_token_counts(service: FakeService, token: str) -> None:
    answer = send(service, BODY, token=token)
    assert answer.status_code == 401
    assert "BOA_REPORT_TOKEN" in answer.json()["error"]["message"]
    assert service.control.reports == []


def test_of_a_job_that_ended_or_never_was_nothing_is_taken(service: FakeService) -> None:
    assert send(service, BODY, job="7").status_code == 404
    service.control.end("1", "succeeded", exit_code=0)
    assert send(service, BODY).status_code == 404
    assert service.control.reports == []


def test_of_a_run_that_another_has_followed_nothing_is_taken(service: FakeService) -> None:
    service.control.run("1", attempt=2)
    answer = send(service, BODY)
    assert answer.status_code == 409
    assert "attempt 1" in answer.json()["error"]["message"]
    assert service.control.reports == []


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"attempt": 0}, "attempt"),
        ({"attempt": True}, "attempt"),
        ({"attempt": "1"}, "attempt"),
        ({"uptime_s": -1}, "uptime_s"),
        ({"uptime_s": "soon"}, "uptime_s"),
        ({"epoch": 1.5}, "epoch"),
        ({"epoch": -1}, "epoch"),
        ({"progress": None}, "progress"),
        ({"units": [1]}, "units"),
        ({"units": 1e300}, "units"),
        ({"step": "3"}, "step"),
        ({"loss": "low"}, "loss"),
        ({"metrics": [1]}, "metrics"),
        ({"metrics": {"a": "b"}}, "metrics.a"),
        ({"metrics": {"n" * 101: 1}}, f"metrics.{'n' * 39}…"),
        ({"metrics": {str(n): n for n in range(101)}}, "metrics"),
        ({"metrics": {"\x1b[2J": 1}}, r"metrics.\x1b[2J"),
        ({"rescale": [1]}, "rescale"),
        ({"rescale": {"start": "soon"}}, "rescale.start"),
        ({"rescale": {"tea": 1}}, "rescale.tea"),
        ({"sample": 1}, "sample"),
    ],
)
def test_a_field_of_a_wrong_type_or_size_is_named(
    service: FakeService, wrong: dict[str, Any], field: str
) -> None:
    answer = send(service, {**BODY, **wrong})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field
    assert service.control.reports == []


def test_a_metric_s_name_that_no_answer_could_spell_is_refused(service: FakeService) -> None:
    said = json.dumps({**BODY, "metrics": {"\ud800": 1}}).encode()
    answer = send(service, None, content=said)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, r"metrics.\ud800")


@pytest.mark.parametrize("field", ["attempt", "uptime_s", "epoch", "progress", "units"])
def test_what_is_missing_is_named(service: FakeService, field: str) -> None:
    body = {key: value for key, value in BODY.items() if key != field}
    assert send(service, body).json()["error"]["field"] == field


def test_what_is_no_json_or_too_long_is_refused(service: FakeService) -> None:
    assert send(service, None, content=b"{").status_code == 400
    assert send(service, None, content=b"[1]").status_code == 422
    assert send(service, None, content=b" " * 65_537).status_code == 413


def test_a_token_is_of_one_run_and_one_secret() -> None:
    made = {
        report_token(secret, job, attempt)
        for secret in (b"a", b"b")
        for job, attempt in (("1", 1), ("1", 2), ("11", 1), ("1/1", 1))
    }
    assert len(made) == 8
    assert all(len(token.partition(".")[2]) == 64 for token in made)


def at(life_s: float) -> str:
    """The run's token with so long to go."""
    return report_token(SECRET, "1", 1, int(time.time() + life_s))


def test_a_token_is_renewed_in_the_answer_when_half_of_its_time_has_passed(
    service: FakeService,
) -> None:
    assert send(service, BODY, token=at(LIFE_S * 0.6)).json() == {"ok": True}
    renewed = send(service, BODY, token=at(LIFE_S * 0.4)).json()["token"]
    assert send(service, BODY, token=renewed).json() == {"ok": True}


def test_one_whose_time_is_over_counts_no_more_nor_does_another_end_put_on_it(
    service: FakeService,
) -> None:
    over = at(-1)
    assert send(service, BODY, token=over).status_code == 401
    _, _, signature = over.partition(".")
    for until in (int(time.time() + 60), "", "-1", "9" * 40, "1e12"):
        assert send(service, BODY, token=f"{until}.{signature}").status_code == 401
    assert service.control.reports == []


def test_one_without_an_end_is_good_only_for_runs_of_an_earlier_version(tmp_path: Path) -> None:
    endless = hmac.new(SECRET, b"1/1", "sha256").hexdigest()
    for began, status in ((NOW - 3600, 401), (NOW, 200)):
        service = FakeService(tmp_path, endless_before=began)
        service.submit()
        service.control.run("1")  # since an hour
        assert send(service, BODY, token=endless).status_code == status
        assert send(service, BODY, token=endless[::-1]).status_code == 401
