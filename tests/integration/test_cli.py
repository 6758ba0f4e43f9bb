"""Commands that plan, end to end: what they print, where, and how they exit."""

import json
from pathlib import Path

import pytest

import boa
from boa.formats.kinds import KINDS
from integration.runner import STRICT, WORKLOAD, Boa

PLAN_KEYS = {
    "version",
    "solver",
    "budget_per_hour",
    "spend_per_hour",
    "average_jct_s",
    "objective_s",
    "lower_bound_s",
    "gap",
    "shadow_price_s",
    "solve_time_s",
    "cluster",
    "classes",
}


def test_a_plan_has_every_key_of_the_contract(run: Boa, workload: str) -> None:
    plan = run.json("plan", workload, "--budget", 10)
    assert set(plan) >= PLAN_KEYS
    assert plan["spend_per_hour"] <= 10 * (1 + 1e-9)
    assert plan["gap"] == pytest.approx(0, abs=1e-9)
    assert set(plan["cluster"]) == {"T4", "A100"}
    for got in plan["classes"]:
        assert {"name", "average_jct_s", "spend_per_hour", "rescalings"} <= set(got)
        assert sum(v["share"] for v in got["variants"]) == pytest.approx(1)
    assert run.err == "", "nothing to say besides the result"


def test_a_person_reads_budget_jct_proof_classes_and_cluster(run: Boa, workload: str) -> None:
    said = run("plan", workload, "--budget", 10)
    for words in ("$10.00/h", "average JCT", "optimal", "one more $/h saves", "small", "large"):
        assert words in said
    assert "under Poisson arrivals; real ones are burstier" in said
    assert "\x1b" not in said, "no colours into a pipe"


def test_money_that_no_plan_can_use_is_said_to_be_left_over(run: Boa, workload: str) -> None:
    assert "left over" in run("plan", workload, "--budget", 100_000)
    assert "left over" not in run("plan", workload, "--budget", 10)


def test_a_budget_below_the_cheapest_names_the_cheapest_and_exits_with_3(
    run: Boa, workload: str
) -> None:
    cheapest = run.json("frontier", workload)["cheapest_per_hour"]
    assert run("plan", workload, "--budget", 0.5 * cheapest, "--json", code=3) == ""
    named = float(run.err.split("spends ")[1].split()[0])
    assert cheapest * (1 - 1e-9) <= named <= cheapest * (1 + 2e-5)
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    run("plan", workload, "--budget", cheapest)
    run("frontier", workload, "--min-budget", 0.5 * cheapest, code=3)
    run("frontier", workload, "--min-budget", 0.5 * cheapest, "--breakpoints", code=3)
    run("frontier", workload, "--budget", 0.5 * cheapest, code=3)


@pytest.mark.parametrize("solver", ["exact", "glue", "milp"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_every_solver_answers_within_the_budget(
    run: Boa, workload: str, solver: str, deterministic: bool
) -> None:
    flags = ["--deterministic"] if deterministic else []
    plan = run.json("plan", workload, "--budget", 9, "--solver", solver, *flags)
    assert plan["solver"] == solver
    assert plan["spend_per_hour"] <= 9 * (1 + 1e-9)
    assert plan["objective_s"] >= plan["lower_bound_s"] * (1 - 1e-9)
    if deterministic and solver == "exact":
        assert all(len(c["variants"]) == 1 for c in plan["classes"])


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--no-rescaling"],
        ["--routing", "migrate"],
        ["--routing", "epoch", "--no-rescaling"],
        ["--billing", "node"],
        ["--deterministic", "--gap", "0.05"],
    ],
)
def test_evaluating_a_written_plan_gives_its_own_figures_back(
    run: Boa, workload: str, tmp_path: Path, flags: list[str]
) -> None:
    path = tmp_path / "plan.json"
    printed = run.json("plan", workload, "--budget", 12, "-o", path, *flags)
    assert f"plan written to {path}" in run.err
    written = json.loads(path.read_text(), **STRICT)
    assert {**written, "solve_time_s": 0} == {**printed, "solve_time_s": 0}
    got = run.json("evaluate", workload, "--plan", path)
    for key in ("average_jct_s", "spend_per_hour", "objective_s"):
        assert got[key] == pytest.approx(printed[key], rel=1e-12)
    assert [c["name"] for c in got["classes"]] == ["small", "large"]
    assert "average JCT" in run("evaluate", workload, "--plan", path)


def test_the_rules_of_an_evaluation_can_be_changed(run: Boa, workload: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    run("plan", workload, "--budget", 12, "-o", path)
    base = run.json("evaluate", workload, "--plan", path)
    instant = run.json("evaluate", workload, "--plan", path, "--no-rescaling")
    whole_nodes = run.json("evaluate", workload, "--plan", path, "--billing", "node")
    assert instant["average_jct_s"] < base["average_jct_s"]
    assert whole_nodes["spend_per_hour"] > base["spend_per_hour"]
    assert whole_nodes["average_jct_s"] == base["average_jct_s"]


def test_a_plan_for_another_workload_is_refused_with_file_and_field(
    run: Boa, workload: str, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    variant = {"share": 1, "gpu_type": "T4", "widths": [1]}
    path.write_text(json.dumps({"classes": [{"name": "other", "variants": [variant]}]}))
    run("evaluate", workload, "--plan", path, code=2)
    assert f"{path}: classes[0].name" in run.err


def test_the_frontier_falls_and_ends_where_more_money_buys_nothing(run: Boa, workload: str) -> None:
    found = run.json("frontier", workload, "--points", 12)
    points = found["points"]
    assert len(points) == 12
    assert points[0]["budget_per_hour"] == found["cheapest_per_hour"]
    assert points[-1]["budget_per_hour"] == found["fastest_per_hour"]
    assert points[-1]["average_jct_s"] == found["fastest_jct_s"]
    objectives = [p["objective_s"] for p in points]
    assert objectives == sorted(objectives, reverse=True)
    for point in points:
        assert {"budget_per_hour", "average_jct_s", "lower_bound_s", "gap"} <= set(point)


def test_the_frontier_agrees_with_the_plan(run: Boa, workload: str) -> None:
    flags = ["--min-budget", 7, "--max-budget", 16, "--points", 3, "--budget", 9]
    found = run.json("frontier", workload, *flags)
    assert [p["budget_per_hour"] for p in found["points"]][::2] == [7, 16]
    plan = run.json("plan", workload, "--budget", 9)
    assert found["chosen"]["average_jct_s"] == pytest.approx(plan["average_jct_s"])
    assert found["chosen"]["shadow_price_s"] == pytest.approx(plan["shadow_price_s"])


def test_breakpoints_are_those_of_the_python_api(run: Boa, workload: str) -> None:
    found = run.json("frontier", workload, "--breakpoints")
    exact = boa.frontier(boa.load_workload(workload)).breakpoints()
    assert [p["budget_per_hour"] for p in found["points"]] == [p.budget for p in exact]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "html"])
def test_pictures_are_written_beside_the_result(
    run: Boa, workload: str, tmp_path: Path, suffix: str
) -> None:
    frontier, widths = tmp_path / f"f.{suffix}", tmp_path / f"w.{suffix}"
    run.json("frontier", workload, "--budget", 9, "--plot", frontier)
    assert str(frontier) in run.err
    run.json("plan", workload, "--budget", 9, "--plot", widths)
    assert min(frontier.stat().st_size, widths.stat().st_size) > 5_000
    assert not list(tmp_path.glob(".*")), "nothing half-written is left behind"


def test_the_budget_for_a_jct_is_the_least_whatever_the_weights(run: Boa, workload: str) -> None:
    plan = run.json("plan", workload, "--budget", 9)
    found = run.json("budget", workload, "--jct", plan["average_jct_s"])
    assert found["budget_per_hour"] < 9 * (1 - 1e-6)
    assert found["average_jct_s"] == pytest.approx(plan["average_jct_s"], rel=1e-6)


def test_the_budget_for_a_jct_buys_that_jct(run: Boa, workload: str) -> None:
    Path(workload).write_text(WORKLOAD.replace("    weight: 2\n", ""))
    plan = run.json("plan", workload, "--budget", 9)
    found = run.json("budget", workload, "--jct", plan["average_jct_s"])
    assert found["budget_per_hour"] == pytest.approx(9, rel=1e-6)
    assert found["average_jct_s"] == pytest.approx(plan["average_jct_s"], rel=1e-6)
    assert "needs a budget of" in run("budget", workload, "--jct", plan["average_jct_s"])


def test_a_jct_that_no_budget_reaches_exits_with_3_and_names_the_shortest(
    run: Boa, workload: str
) -> None:
    fastest = run.json("frontier", workload)["fastest_jct_s"]
    run("budget", workload, "--jct", 1, code=3)
    named = float(run.err.split("plan takes ")[1].split()[0])
    assert fastest * (1 - 1e-9) <= named <= fastest * (1 + 2e-5)


def test_a_workload_is_described(run: Boa, workload: str) -> None:
    found = run.json("workload", "describe", workload)
    assert found["arrivals_per_hour"] == 6.5
    assert found["classes"][1]["widths"] == {"T4": [2, 64], "A100": [1, 64]}
    assert "large" in run("workload", "describe", workload)


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_printed(run: Boa, kind: str) -> None:
    assert run.json("schema", kind)["$schema"].endswith("2020-12/schema")


def test_every_command_teaches_with_examples(run: Boa) -> None:
    commands = ["plan", "evaluate", "frontier", "budget", "schema", "demo"]
    for command in [*commands, "workload from-trace", "workload describe"]:
        said = run(*command.split(), "--help")
        assert f"$ boa {command}" in said
        assert "--json" in said
    assert "Exit codes" in run("--help")
    assert run("--help") == run()
    assert run("--version") == f"boa {boa.__version__}\n"


def test_a_workload_is_estimated_from_a_trace(run: Boa, tmp_path: Path) -> None:
    trace, made = tmp_path / "trace.csv", tmp_path / "made.yaml"
    rows = [f"job-{n},{n * 300},{'cifar10' if n % 3 else 'bert'}" for n in range(30)]
    trace.write_text("\n".join(["name,arrival_s,application", *rows]))
    printed = run("workload", "from-trace", trace, "--gpus", "T4,A100")
    assert run("workload", "from-trace", trace, "--gpus", "T4,A100", "-o", made) == ""
    assert printed == made.read_text()
    document = run.json("workload", "from-trace", trace, "--gpus", "T4,A100")
    assert [c["name"] for c in document["classes"]] == ["resnet18", "bert"]
    run("workload", "from-trace", trace, "--gpus", "T4,T4", code=2)
    run("workload", "from-trace", trace, "--gpus", "H900", code=2)
    run("workload", "from-trace", tmp_path / "none.csv", "--gpus", "T4", code=2)
    flags = ["--gpus", "T4,A100", "--prices", "T4=0.5,A100=2", "--rescale-s", 7]
    cheap = run.json("workload", "from-trace", trace, *flags)
    assert cheap["gpu_types"]["T4"]["price"] == 0.5
    assert {c["rescale_s"] for c in cheap["classes"]} == {7}
    run("workload", "from-trace", trace, "--gpus", "T4", "--prices", "T4:1", code=2)


@pytest.mark.slow
def test_the_demo_runs_the_service_and_holds_the_plan_against_what_came(
    run: Boa, tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "demo"
    document = run.json("demo", "-o", folder)
    assert document["jobs"] == 16
    assert document["failed"] == 0
    assert document["measured_jct_s"] == pytest.approx(document["planned_jct_s"], rel=0.25)
    planned, measured = document["planned_spend_per_hour"], document["measured_spend_per_hour"]
    assert measured == pytest.approx(planned, rel=0.25)
    assert document["real_job"]["state"] == "succeeded"
    assert [Path(name).name for name in document["files"]] == ["demo.png", "demo.svg"]
    assert all(Path(name).stat().st_size > 5_000 for name in document["files"])
    run("demo", "-o", folder / "demo.png", code=2)


@pytest.mark.parametrize("options", [(), ("--routing", "migrate")])
def test_a_frontier_that_algorithm_1_cannot_plan_is_drawn_without_it(
    run: Boa, workload: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    capped = WORKLOAD.replace("    weight: 2\n", "    max_jct_s: 9000\n")
    Path(workload).write_text(capped)
    picture = tmp_path / "frontier.svg"
    run("frontier", workload, "--plot", picture, *options)
    assert picture.stat().st_size > 1000


def test_one_sequence_per_class_that_a_budget_cannot_pay_exits_with_3(
    run: Boa, tmp_path: Path
) -> None:
    path = tmp_path / "capped.yaml"
    path.write_text(
        "version: 1\ngpu_types: {T4: {}}\nclasses: [{name: a, arrivals_per_hour: 1, max_gpus: 2, "
        "max_jct_s: 3000, epochs: [{work_s: 3600, speedup: {T4: {power: 0.5}}}]}]\n"
    )
    run("plan", path, "--budget", 1.3)
    for solver in ("exact", "milp"):
        run("plan", path, "--budget", 1.3, "--deterministic", "--solver", solver, code=3)
        assert "1.41422 per hour is enough" in run.err
    run("plan", path, "--budget", 1.41422, "--deterministic")
