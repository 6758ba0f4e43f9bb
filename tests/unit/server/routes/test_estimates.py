"""Estimates over the API, the client and the command line."""

from dataclasses import replace
from typing import Any

import pytest

from boa.client import Client
from boa.model.job import JobSpec
from boa.model.priorities import Priority
from boa.runtime.estimating import JobEstimate
from boa.scheduler.decide.hours import PutOff
from boa.scheduler.plan.displacing import Displaced
from boa.scheduler.plan.job_estimate import Probe, Range, Stage, Way
from boa.scheduler.plan.priority_costs import PriorityCost
from boa.scheduler.plan.queue_ahead import Queue
from fakes import NOW, FakeService
from integration.runner import Boa
from unit.server.http.test_roles import OWN, record, token_of

JOB = {"class": "net", "run": ["python", "train.py"]}
KNOWN = JobEstimate(
    job_class="net",
    basis="jobs",
    jobs=12,
    time_s=7200.0,
    cost_usd=5.0,
    times=Range(low=6000.0, high=9000.0),
    costs=Range(low=4.0, high=6.5),
    spread_jobs=12,
    ways=(Way(1.0, (Stage(0, 1, "T4", 1, 2400.0, 1.0), Stage(2, 4, "T4", 4, 4800.0, 4.0))),),
    queue=Queue(waiting=2, gpus=6, jobs=("3", "4"), wait_s=600.0),
    plan=7,
    now=NOW,
)
UNKNOWN = JobEstimate(
    job_class="net",
    queue=Queue(waiting=0, gpus=0, wait_s=0.0),
    probe=Probe(gpu="T4", width=1, seconds=300.0, cost_usd=0.08),
    now=NOW,
)


def test_an_estimate_has_time_cost_widths_spread_and_who_waits(service: FakeService) -> None:
    service.control.estimated = KNOWN
    answer = service.ask("POST", "/api/v1/jobs/estimate", json=JOB)
    assert answer.status_code == 200, answer.text
    found = answer.json()["estimate"]
    assert (found["class"], found["basis"], found["plan"]) == ("net", "jobs", 7)
    assert (found["time_s"], found["cost_usd"]) == (7200.0, 5.0)
    assert found["time_range"] == {"low": 6000.0, "high": 9000.0}
    assert [stage["width"] for stage in found["ways"][0]["stages"]] == [1, 4]
    assert found["before"]["jobs"] == ["3", "4"]
    assert (found["probe"], found["put_off"]) == (None, None)
    assert "2 h for $5.00" in found["words"]
    assert service.control.active == {}, "nothing is submitted"


def test_a_job_that_would_wait_for_other_hours_says_so(run: Boa, service: FakeService) -> None:
    why = "waits for night, from Mon 2026-11-16 20:00 CET on: it takes 1 h and $2.00 then, 2 h now"
    service.control.estimated = replace(KNOWN, put_off=PutOff(NOW + 600.0, why))
    found = service.ask("POST", "/api/v1/jobs/estimate", json=JOB).json()["estimate"]
    assert found["put_off"] == {"until": NOW + 600.0, "why": why}
    assert found["words"].endswith(f". It {why}.")
    said = run("submit", "--class", "net", "--estimate", "true")
    assert f"wait  it {why}" in " ".join(said.split("\n")).replace("wait it", "wait  it")
    assert "it would start in" not in said


def test_of_a_class_that_nobody_knows_a_probe_is_offered(service: FakeService) -> None:
    service.control.estimated = UNKNOWN
    found = service.ask("POST", "/api/v1/jobs/estimate", json=JOB).json()["estimate"]
    assert (found["basis"], found["time_s"]) == (None, None)
    assert found["probe"] == {"gpu_type": "T4", "width": 1, "seconds": 300.0, "cost_usd": 0.08}
    assert "A probe on 1×T4 measures it in at most 5 min" in found["words"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"run": "true"}, "class"),
        ({**JOB, "gpus": {"min": 0}}, "gpus.min"),
        ({**JOB, "env_file": "/etc/shadow"}, "env_file"),
        ({**JOB, "colour": "red"}, "colour"),
    ],
)
def test_a_wrong_job_is_refused_as_it_would_be(
    service: FakeService, body: dict[str, Any], field: str
) -> None:
    answer = service.ask("POST", "/api/v1/jobs/estimate", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == field


def test_viewers_do_not_estimate(tmp_path: Any) -> None:
    service = FakeService(tmp_path, token=OWN)
    service.control.tokens = {"vera": record("vera", "viewer"), "mia": record("mia", "member")}
    for who, status in (("vera", 403), ("mia", 200)):
        headers = {"Authorization": f"Bearer {token_of(who)}"}
        answer = service.ask("POST", "/api/v1/jobs/estimate", json=JOB, headers=headers)
        assert answer.status_code == status, answer.text


def test_the_client_neither_packs_nor_reads_anything_for_it(service: FakeService) -> None:
    service.control.estimated = KNOWN
    job = {**JOB, "workdir": "/none", "package": "workdir", "env_file": "/none"}
    with Client() as client:
        assert client.estimate(job)["time_s"] == 7200.0


def test_the_command_shows_it_in_a_few_lines(run: Boa, service: FakeService) -> None:
    service.control.estimated = KNOWN
    said = run("submit", "--class", "net", "--estimate", "--", "python", "train.py")
    assert "time  2 h, four of five jobs between 1 h 40 min and 2 h 30 min" in said
    assert "cost  $5.00, four of five jobs between $4.00 and $6.50" in said
    assert "from  12 jobs of net that succeeded" in said
    assert "2 jobs wait for 6 GPUs before it; it would start in about 10 min" in said
    assert "1–2" in said
    assert "4×T4" in said
    assert service.control.active == {}
    found = run.json("submit", "--class", "net", "--estimate", "true")
    assert found["estimate"]["cost_usd"] == 5.0


def test_one_job_waits_for_one_gpu(run: Boa, service: FakeService) -> None:
    assert KNOWN.queue is not None
    service.control.estimated = replace(KNOWN, queue=replace(KNOWN.queue, waiting=1, gpus=1))
    said = run("submit", "--class", "net", "--estimate", "true")
    assert "wait  1 job waits for 1 GPU before it; it would start" in said
    words = run.json("submit", "--class", "net", "--estimate", "true")["estimate"]["words"]
    assert " 1 job waits before it for 1 GPU." in words


def test_where_the_wait_is_unknown_the_end_is_too_and_the_reason_is_told(
    run: Boa, service: FakeService
) -> None:
    queue = Queue(waiting=0, gpus=0, wait_s=None)
    why = "the jobs that have the GPUs cannot checkpoint"
    service.control.estimated = replace(KNOWN, queue=queue, blocked=why)
    said = run("submit", "--class", "net", "--estimate", "--", "true")
    assert "end   unknown, as its wait is" in said
    assert f"no job waits; it is unknown when GPUs come free: {why}" in " ".join(said.split())
    found = service.ask("POST", "/api/v1/jobs/estimate", json=JOB).json()["estimate"]
    assert (found["jct_s"], found["jct_range"], found["blocked"]) == (None, None, why)
    assert f"It is unknown when GPUs come free: {why}." in found["words"]


def test_the_cost_of_a_stop_says_how_much_of_it_is_lost_work(
    run: Boa, service: FakeService
) -> None:
    one = Displaced(job="4", gpus=1, preempted=True, seconds=42.0, lost_s=12.0, usd=0.012)
    service.control.estimated = replace(KNOWN, displaces=(one,))
    said = " ".join(run("submit", "--class", "net", "--estimate", "--", "true").split())
    assert "the stop costs it 42 s ($0.012), 12 s of that in lost work" in said


@pytest.mark.parametrize(
    ("priority", "time", "cost", "wait"),
    [
        ("normal", "time  2 h, four", "cost  $5.00, four", "it would start in about 10 min"),
        (
            "urgent",
            "time  1 h; as a normal job 2 h, four",
            "cost  $9.00; as a normal job $5.00, four",
            "it would start in about 10 min",
        ),
        (
            "background",
            "time  on empty GPUs, however long these last; as a normal job 2 h, four",
            "cost  nothing is paid; as a normal job $5.00, four",
            "wait  until GPUs are paid for and empty; it makes room for jobs that pay",
        ),
    ],
)
def test_the_head_is_of_the_priority_that_was_asked_for(
    run: Boa, service: FakeService, priority: str, time: str, cost: str, wait: str
) -> None:
    priorities = (
        priority_cost("urgent", 3600.0, 9.0, "urgent takes as long as normal: it is as wide"),
        priority_cost("normal", 7200.0, 5.0),
        priority_cost("background", None, 0.0),
    )
    service.control.estimated = replace(KNOWN, priorities=priorities)
    how = ("submit", "--class", "net", "--estimate", "--priority", priority, "--", "true")
    said = run(*how)
    assert all(words in said for words in (time, cost, wait))
    assert "urgent takes as long as normal: it is as wide" in said.splitlines()[-1]
    assert ("4×T4" in said) == (priority != "background")


def test_words_are_of_the_priority_that_was_asked_for(service: FakeService) -> None:
    urgent = priority_cost("urgent", 3600.0, 9.0)
    service.control.estimated = replace(KNOWN, priority="urgent", priorities=(urgent,))
    found = service.ask("POST", "/api/v1/jobs/estimate", json=JOB).json()["estimate"]
    said = "Urgent, it takes 1 h and $9.00 if its GPUs are there. As a normal job about 2 h"
    assert found["words"].startswith(said)
    assert "note" not in found["priorities"][0]


def priority_cost(
    priority: Priority, jct_s: float | None, usd: float, note: str = ""
) -> PriorityCost:
    return PriorityCost(
        priority=priority,
        weight=1.0,
        jct_s=jct_s,
        usd=usd,
        others_s=0.0,
        class_others_s=0.0,
        class_usd_per_hour=0.0,
        note=note,
    )


def test_the_command_offers_a_probe_where_nothing_is_known(run: Boa, service: FakeService) -> None:
    service.control.estimated = UNKNOWN
    said = run("submit", "--class", "net", "--estimate", "--", "true")
    assert "time  unknown: no job of net has ended or reported progress" in said
    assert "boa submit --probe measures it on 1×T4 in at most 5 min, for at most $0.080" in said
    for beside in (["--wait"], ["--terms"], ["--sweep", "lr=1,2"]):
        run("submit", "--class", "net", "--estimate", *beside, "--", "true", code=2)


def test_a_probe_is_submitted_narrow_and_stopped_whatever_it_shows(
    run: Boa, service: FakeService
) -> None:
    service.control.estimated = UNKNOWN
    submit = service.control.submit

    def learn(*given: Any, **options: Any) -> Any:
        service.control.estimated = KNOWN  # its first reports
        return submit(*given, **options)

    service.control.submit = learn  # type: ignore[method-assign]
    options = ("--class", "net", "--max-gpus", 8, "--max-cost", 2)
    said = run("submit", *options, "--probe", "--", "true")
    assert "cost  $5.00" in said
    assert "probing net on 1×T4" in run.err
    job = service.control.store.kept["1"]
    assert (job.spec.gpus.max, job.spec.retries, job.name) == (1, 0, "probe of net")
    assert job.spec.max_cost == 2
    assert job.stop_requested or job.state == "stopped"


def test_a_probe_waits_for_nobody_and_leaves_the_key_to_the_job_itself(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.control.estimated = UNKNOWN
    sent: list[JobSpec] = []
    submit = service.control.submit

    def learn(spec: JobSpec, **options: Any) -> Any:
        service.control.estimated = KNOWN
        sent.append(spec)
        return submit(spec, **options)

    monkeypatch.setattr(service.control, "submit", learn)
    job = {"class": "net", "run": ["true"], "key": "nightly", "after": [12], "max_cost": 4}
    with service.serving() as url, Client(url, OWN) as client:
        client.probe(job)
    (spec,) = sent
    assert (spec.key, spec.after, spec.max_cost) == ("", (), 4)


def test_a_class_that_is_known_is_not_probed(run: Boa, service: FakeService) -> None:
    service.control.estimated = KNOWN
    assert "cost  $5.00" in run("submit", "--class", "net", "--probe", "--", "true")
    assert service.control.active == {}
