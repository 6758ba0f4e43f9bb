"""What may be asked of simulations beside the service, and what is kept of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boa.formats.calendar import parse_calendar
from boa.model.cluster import Shape
from boa.model.job import JobRecord, State
from boa.model.trace import TraceJob
from boa.policy.registry import POLICIES, Knobs
from boa.scheduler.learn.node_times import NodeTimes
from boa.server.routes import what_if
from boa.server.what_if.own_trace import Own, own_of, own_world
from boa.server.what_if.runner import SimulationQuestion, Simulations
from boa.server.what_if.traces import catalogue_world, generated_trace
from boa.sim.physics import TableTruth
from boa.sim.replay_jobs import profiles_of
from boa.sim.run import World, world_of
from boa.sim.sweep import Asked, SweepGrid, points_of, run_one
from fakes import NOW, FakeService
from live import T4, Live, config, prior, profile, spec

ASKED: dict[str, Any] = {"trace": "day", "policies": ["boa"], "budgets": [80]}
WEEK: dict[str, Any] = {
    "periods": [
        {"name": "night", "hours": "20:00-08:00", "budget_per_hour": 120, "price_factor": 0.5},
        {"name": "day", "budget_per_hour": 40},
    ]
}
HEAD = "name,arrival_s,application\n"


def file(text: str, **fields: Any) -> dict[str, Any]:
    rest = {key: value for key, value in ASKED.items() if key != "trace"}
    return {**rest, "trace_file": {"name": "mine.csv", "text": text}, **fields}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[FakeService]:
    service = FakeService(tmp_path, gpu_types={"T4": replace(T4, price=2.0)})
    yield service
    service.simulations.close()


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "an unknown trace": ({**ASKED, "trace": "week"}, "trace", "one of day, "),
    "no trace": ({"policies": ["boa"], "budgets": [80]}, "trace", "or else a trace_file"),
    "two traces": ({**file(HEAD), "trace": "day"}, "trace", "or else a trace_file"),
    "an unknown policy": ({**ASKED, "policies": ["boa", "luck"]}, "policies[1]", "pollux-auto"),
    "no policy": ({**ASKED, "policies": []}, "policies", "at least one entry"),
    "a policy twice": ({**ASKED, "policies": ["boa", "boa"]}, "policies", "every entry once"),
    "no budget": ({**ASKED, "budgets": []}, "budgets", "at least one entry"),
    "a negative budget": ({**ASKED, "budgets": [80, -1]}, "budgets[1]", "> 0"),
    "a target over 1": ({**ASKED, "targets": [1.5]}, "targets[0]", "<= 1"),
    "an unknown billing": ({**ASKED, "billing": "hour"}, "billing", "one of gpu, node"),
    "a seed of words": ({**ASKED, "seed": "x"}, "seed", "a whole number"),
    "an unknown GPU type": ({**ASKED, "gpu_types": ["T9"]}, "gpu_types", "T4, V100"),
    "types that a policy cannot mix": (
        {**ASKED, "policies": ["boa", "tiresias"], "gpu_types": ["T4", "A100"]},
        "gpu_types",
        "tiresias runs on no more",
    ),
    "too many points": ({**ASKED, "budgets": list(range(1, 62))}, "policies", "at most 60 points"),
    "a calendar for who is not run by the service": (
        {**ASKED, "policies": ["sia"], "calendar": WEEK},
        "policies",
        "a policy that the service runs",
    ),
    "a calendar of its own where there is none": (
        {**ASKED, "calendar": "own"},
        "calendar",
        "this service's own budget follows none",
    ),
    "a calendar without periods": (
        {**ASKED, "calendar": {}},
        "calendar.periods",
        "the fields periods",
    ),
    "a calendar that is null": ({**ASKED, "calendar": None}, "calendar", "a mapping"),
    "prices of what is not simulated": (
        {
            **ASKED,
            "calendar": {"periods": [{"name": "all", "budget_per_hour": 1, "prices": {"T9": 1}}]},
        },
        "calendar: all: prices",
        "T4",
    ),
    "an unknown field": ({**ASKED, "budget": 3}, "budget", "one of "),
    "own, of nothing": ({**ASKED, "trace": "own"}, "trace", "fewer than 10 jobs"),
    "text that is no trace": (file('{"jobs": []}'), "mine.csv", "column 'name'"),
    "a line that is no job": (
        file(f"{HEAD}a,0,cifar10\nb,soon,cifar10\n"),
        "mine.csv, line 3, column arrival_s",
        "a number",
    ),
    "an unknown application": (
        file(f"{HEAD}a,0,cifar10\nb,9,gpt\n"),
        "mine.csv: trace, line 3 (b), column application",
        "cifar10, deepspeech2",
    ),
    "jobs that all come at once": (file(f"{HEAD}a,0,cifar10\n"), "mine.csv", "spread over time"),
    "too many jobs": (
        file(HEAD + "".join(f"j{n},{n},cifar10\n" for n in range(20_001))),
        "mine.csv",
        "at most 20,000 jobs",
    ),
    "nothing but blank lines": (file(HEAD + "\n" * 50_000), "mine.csv", "at least one row"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_before_anything_starts(service: FakeService, case: str) -> None:
    body, field, expected = WRONG[case]
    answer = service.ask("POST", "/api/v1/what-if", json=body)
    assert answer.status_code == 422
    problem = answer.json()["error"]
    assert problem["field"] == field
    assert expected in problem["expected"]
    assert service.get("what-if") == {"simulations": []}
    assert service.simulations.pid is None


def test_a_body_of_over_8_mib_is_refused_unread(service: FakeService) -> None:
    answer = service.ask("POST", "/api/v1/what-if", json=file("x" * 8 * 1024**2))
    assert answer.status_code == 413


def test_a_simulation_that_nobody_asked_for_is_not_found(service: FakeService) -> None:
    for method, path in (("GET", "what-if/7"), ("POST", "what-if/7/stop"), ("GET", "what-if/x")):
        answer = service.ask(method, f"/api/v1/{path}")
        assert answer.status_code == 404
        assert answer.json()["error"]["field"] == "id"


def test_the_paper_s_mix_is_always_there_at_the_service_s_prices(service: FakeService) -> None:
    found = service.get("what-if/traces")
    assert [choice["name"] for choice in found["traces"]] == ["day", "steady-day"]
    assert found["policies"] == list(POLICIES)
    told = {
        one["name"]: (one["about"], one["several_gpu_types"]) for one in found["policy_choices"]
    }
    assert told == {name: (of.meaning, of.several_types) for name, of in POLICIES.items()}
    for choice in found["traces"]:
        trace = generated_trace(choice["name"])
        assert choice["jobs"] == len(trace.jobs)
        world = catalogue_world("day", trace, None, service.gpu_types)
        assert world.gpu_types["T4"].price == 2.0
        for budget in choice["budgets"][:: len(choice["budgets"]) - 1]:
            spent = run_one(world, "boa", Knobs(budget=budget), Asked()).document()
            assert spent["spend_per_hour"] == pytest.approx(budget, rel=0.1)


# What money is

SLOW = NodeTimes(boot_s=120.0, reclaim_s=30.0)


def test_budgets_count_what_the_service_s_own_does(tmp_path: Path) -> None:
    service = FakeService(tmp_path, gpu_types={"T4": T4}, billing="node", node_times=SLOW)
    try:
        assert service.get("what-if/traces")["billing"] == "node"
        by_itself, otherwise = (
            service.ask("POST", "/api/v1/what-if", json={**ASKED, **more}).json()["simulation"]
            for more in ({}, {"billing": "gpu"})
        )
    finally:
        service.simulations.close()
    assert (by_itself["billing"], by_itself["boot_s"]) == ("node", 120.0)
    assert (otherwise["billing"], otherwise["boot_s"]) == ("gpu", 0.0)


def test_a_calendar_in_the_question_changes_prices_by_the_hour(service: FakeService) -> None:
    told = service.ask("POST", "/api/v1/what-if", json={**ASKED, "calendar": WEEK}).json()
    assert told["simulation"]["calendar"] == ["night", "day"]
    service.ask("POST", f"/api/v1/what-if/{told['simulation']['id']}/stop")
    world = catalogue_world("day", generated_trace("day"), None, {})
    jobs = world.trace.jobs[:3]
    few = replace(world, trace=replace(world.trace, jobs=jobs))
    calendar = parse_calendar(WEEK).begun_on_a_monday()
    usual, changing = (
        run_one(few, "boa", Knobs(budget=40.0), asked)
        for asked in (Asked(max_spend=1e6), Asked(max_spend=1e6, calendar=calendar))
    )
    assert jobs[-1].arrival_s < 8 * 3600, "at night"
    assert changing.bill_per_hour / changing.gpu_hours == pytest.approx(
        usual.bill_per_hour / usual.gpu_hours / 2, rel=0.2
    )


def test_a_question_can_follow_the_service_s_own_calendar_without_its_end(tmp_path: Path) -> None:
    week = parse_calendar({**WEEK, "until": "2020-01-01"})
    service = FakeService(tmp_path, gpu_types={"T4": T4}, calendar=week)
    seen: list[SimulationQuestion] = []
    try:
        choices = service.get("what-if/traces")
        service.simulations.ask = lambda question: seen.append(question)  # type: ignore[assignment, return-value]
        service.ask("POST", "/api/v1/what-if", json={**ASKED, "calendar": "own"})
    finally:
        service.simulations.close()
    assert choices["calendar"] == ["night", "day"]
    follows = {one["name"]: one["follows_calendar"] for one in choices["policy_choices"]}
    assert (follows["boa"], follows["sia-autoscale"], follows["sia"]) == (True, True, False)
    (question,) = seen
    assert question.asked.calendar == replace(week, until=None).begun_on_a_monday()


def test_own_jobs_come_at_the_hours_at_which_they_came(tmp_path: Path) -> None:
    service = FakeService(tmp_path, gpu_types={"T4": T4}, calendar=parse_calendar(WEEK))
    service.control.profiled = {"known": profile("known")}
    for number in range(10):
        service.control.put(record(number + 1, "known"))
    seen: list[SimulationQuestion] = []
    try:
        service.simulations.ask = lambda question: seen.append(question)  # type: ignore[assignment, return-value]
        question = {**ASKED, "trace": "own", "calendar": "own"}
        service.ask("POST", "/api/v1/what-if", json=question)
    finally:
        service.simulations.close()
    calendar = seen[0].asked.calendar
    assert calendar is not None
    assert calendar.origin == NOW + 600.0


def test_where_nodes_are_billed_they_boot_as_slowly_as_the_service_s_own() -> None:
    simulations = Simulations(gpu_types={"T4": T4}, billing="node", node_times=SLOW)
    asked = simulations.asked(3, "node", ["T4", "A100"])
    assert asked == Asked(seed=3, billing="node", provision_s=120.0, reclaim_s=30.0)
    assert simulations.asked(3, "gpu", ["T4"]) == Asked(seed=3)


# What the service has seen


def record(number: int, job_class: str, state: State = "succeeded", **fields: Any) -> JobRecord:
    said = {key: fields.pop(key) for key in ("total_work",) if key in fields}
    return JobRecord(
        id=str(number),
        spec=spec(job_class, **said),
        serial=0,
        state=state,
        submitted_at=NOW + 600.0 * number,
        **fields,
    )


def own(*records: JobRecord) -> Own:
    known = {"known": profile("known", work=(100.0, 300.0))}
    return own_of(records, known, {"T4": T4})


def test_jobs_count_as_the_mean_job_or_as_much_as_they_state_or_as_they_had_done() -> None:
    found = own(
        record(1, "known"),
        record(2, "known", "running", best_epoch=1),
        record(3, "known", total_work=800.0),
        record(4, "known", "stopped", best_epoch=1, best_progress=60.0),
        record(5, "known", "failed", total_work=800.0, best_epoch=1, best_progress=120.0),
        record(6, "known", "failed"),
        record(7, "unheard"),
    )
    scales = {"1": 1.0, "2": 1.0, "3": 2.0, "4": 160 / 400, "5": 320 / 400}
    assert found.scales == pytest.approx(scales)
    assert found.left_out == 2
    assert [job.arrival_s for job in found.trace.jobs] == [0, 600, 1200, 1800, 2400]


def test_own_jobs_are_offered_from_ten_of_known_classes_on(service: FakeService) -> None:
    service.control.profiled = {"known": profile("known")}
    for number in range(9):
        service.control.put(record(number + 1, "known"))
    service.control.put(record(10, "unheard"))
    assert len(service.get("what-if/traces")["traces"]) == 2
    service.control.put(record(11, "known", "running"))
    (*_, choice) = service.get("what-if/traces")["traces"]
    assert choice["name"] == "own"
    assert (choice["jobs"], choice["gpu_types"]) == (10, ["T4"])
    assert choice["hours"] == pytest.approx(10 / 6)
    assert choice["budgets"] == [7.0, 10.5, 14.0, 21.0, 28.0]
    assert "Left out: 1 that nothing was measured of" in choice["about"]


def test_own_jobs_simulated_at_the_service_s_budget_cost_and_take_what_they_did(
    tmp_path: Path,
) -> None:
    known = {"a": profile("a", work=(3600.0, 1800.0)), "b": profile("b", alpha=0.6)}
    rate = 10 / (19 * 600 / 3600)  # as a trace counts it: over the time from first to last
    priors = {name: prior(found, rate, 1e6) for name, found in known.items()}
    live = Live(config(tmp_path, budget=12.0, priors=priors, pacing_h=8760.0, billing="gpu"), known)
    for number in range(20):
        live.submit(spec("ab"[number % 2], epochs=2 - number % 2))
        live.advance(600.0)
    live.finish()
    jobs = [live.job(str(number + 1)) for number in range(20)]
    assert {job.state for job in jobs} == {"succeeded"}
    seen = own_of(jobs, live.loop.profiles(), live.config.gpu_types)
    live.close()
    got = run_one(own_world(seen, None), "boa", Knobs(budget=12.0), Asked()).document()
    took = sum((job.ended_at or 0.0) - job.submitted_at for job in jobs) / len(jobs)
    assert got["average_jct_s"] == pytest.approx(took, rel=0.05)
    assert got["gpu_hours"] == pytest.approx(sum(job.cost_usd for job in jobs), rel=0.05)


def test_only_what_was_measured_is_known_and_no_wider_than_a_plan_may_go(tmp_path: Path) -> None:
    live = Live(config(tmp_path), {"new": profile("new", work=(1200.0,) * 6)})
    live.submit(spec("new", epochs=6))
    assert live.loop.profiles() == {}
    live.finish()
    found = live.loop.profiles()["new"]
    tried = live.loop.profiler.tried("new")["T4"]
    live.close()
    assert found.rates["T4"].shape == (6, 2, tried + 1)
    across = int(tried > T4.gpus_per_node)
    assert found.rates["T4"][0, across, tried] == pytest.approx(tried**0.8, rel=0.05)
    assert found.work == pytest.approx((1200.0,) * 6)


def as_tables(world: World) -> World:
    """The same classes, known by their rates alone."""
    scales = {
        app: {job.name: 1.0 for job in world.trace.jobs if job.application == app}
        for app in world.trace.counts()
    }
    found = profiles_of(world)
    tables = {app: TableTruth(profile=found[app], scales=scales[app]) for app in found}
    return replace(world, truths=tables)


@pytest.mark.parametrize(
    ("policy", "knobs"),
    [
        ("boa", Knobs(budget=14.0)),
        ("sia-autoscale", Knobs(target=0.5)),
        ("sia", Knobs(nodes={"T4": 4})),
        ("pollux", Knobs(nodes={"T4": 4})),
        ("rubick-autoscale", Knobs(target=0.5)),
        ("reservation", Knobs()),
        ("tiresias", Knobs(nodes={"T4": 4})),
        ("fixed", Knobs(width=2)),
        ("optimus-goodput", Knobs(nodes={"T4": 4})),
        ("gavel", Knobs(nodes={"T4": 4})),
        ("hesrpt", Knobs(nodes={"T4": 4})),
        ("allox", Knobs(nodes={"T4": 4})),
        ("shockwave", Knobs(nodes={"T4": 4})),
        ("qssf", Knobs(nodes={"T4": 4})),
        ("optimus-price", Knobs(knob=300.0)),
        ("efficiency", Knobs(target=0.5)),
        ("scavenger", Knobs(knob=0.5)),
        ("elasticflow", Knobs(knob=0.3)),
        ("rubberband", Knobs(knob=0.3)),
        ("gavel-cost", Knobs(knob=0.3)),
    ],
)
def test_every_policy_runs_classes_that_are_known_by_their_rates_alone(
    policy: str, knobs: Knobs
) -> None:
    jobs = tuple(
        TraceJob(name=str(n), arrival_s=900.0 * n, application="ncf" if n % 4 == 2 else "cifar10")
        for n in range(8)
    )
    world = world_of(replace(generated_trace("day"), jobs=jobs), None)
    exact = run_one(world, policy, knobs, Asked(learning="perfect")).document()
    found = run_one(as_tables(world), policy, knobs, Asked()).document()
    assert found["completed"] == 8
    if POLICIES[policy].own_batch:  # rates alone tell nothing of other batch sizes
        return
    # Only the shapes differ: a table knows one node or several, a model how many.
    assert found["average_jct_s"] == pytest.approx(exact["average_jct_s"], rel=0.05)
    assert found["gpu_hours"] == pytest.approx(exact["gpu_hours"], rel=0.05)


@pytest.mark.parametrize(
    ("shape", "rate"), [((1,), 1.0), ((4,), 4**0.8), ((1, 1), 2**0.8), ((4, 4, 4, 4, 1), 0.0)]
)
def test_a_table_says_how_fast_a_placement_is(shape: Shape, rate: float) -> None:
    truth = TableTruth(profile=profile("known", work=(1.0, 2.0)), scales={"1": 2.0, "2": 4.0})
    assert truth.best_on("T4", shape) == pytest.approx([rate, rate])
    assert truth.mean_work.tolist() == [3.0, 6.0]
    assert (truth.widest("T4"), truth.widest("A100")) == (16, 0)


def test_the_points_said_beforehand_are_those_there_are_at_most(service: FakeService) -> None:
    every = list(service.get("what-if/traces")["policies"])
    grid = SweepGrid(budgets=[60.0], targets=[0.5])
    world = catalogue_world("day", generated_trace("day"), None, {})
    assert what_if._check_points(every, grid) == len(points_of(world, every, grid))
