"""`boa simulate`: what it prints, writes and refuses."""

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from boa.policy.registry import POLICIES
from integration.runner import CONTRACT, JOBS, Boa, same

RUNS: dict[str, list[object]] = {
    "boa": ["--budget", 12],
    "fixed": ["--width", 4],
    "pollux": ["--nodes", "T4=4"],
    "pollux-autoscale": ["--target-efficiency", 0.6],
    "sia": ["--nodes", "T4=4"],
    "sia-autoscale": ["--target-efficiency", 0.6],
    "rubick": ["--nodes", "T4=4"],
    "rubick-autoscale": ["--target-efficiency", 0.6],
    "rubick-autoscale-by-base": ["--target-efficiency", 0.6],
    "rubick-autoscale-queueing": ["--target-efficiency", 0.6],
    "reservation": [],
    "tiresias": ["--nodes", "T4=4"],
    "optimus": ["--nodes", "T4=4"],
    "gavel": ["--nodes", "T4=4"],
    "gavel-maxmin": ["--nodes", "T4=4"],
    "themis": ["--nodes", "T4=4", "--symmetric"],
    "optimus-goodput": ["--nodes", "T4=4"],
    "optimus-price": ["--knob", 300],
    "efficiency": ["--target-efficiency", 0.6],
    "scavenger": ["--knob", 0.5],
    "elasticflow": ["--knob", 0.3],
    "rubberband": ["--knob", 0.3],
    "gavel-cost": ["--knob", 0.3],
    "hesrpt": ["--nodes", "T4=4"],
    "qssf": ["--nodes", "T4=4"],
    "allox": ["--nodes", "T4=4"],
    "shockwave": ["--nodes", "T4=4"],
}
SPAN_H = (JOBS - 1) * 900 / 3600
RUBICK_HEAD = (
    "name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,is_sla\n"
)
FIXED = ["--policy", "fixed", "--width", 4]
BOA = ["--policy", "boa", "--budget", 12]
AUTOSCALED = ["--policy", "sia-autoscale", "--target-efficiency", 0.6]


def test_the_names_that_are_offered_are_those_there_are() -> None:
    assert tuple(POLICIES) == tuple(RUNS)


@pytest.mark.parametrize("policy", RUNS)
def test_every_policy_gives_every_key_of_the_contract(run: Boa, trace: Path, policy: str) -> None:
    got = run.json("simulate", trace, "--policy", policy, *RUNS[policy])
    assert set(got) >= CONTRACT
    assert run.err == ""
    assert (got["policy"], got["jobs"], got["completed"]) == (policy, JOBS, JOBS)
    assert got["average_gpus"] * SPAN_H == pytest.approx(got["gpu_hours"])
    assert got["spend_per_hour"] == pytest.approx(got["average_gpus"]), "one type costs 1"
    assert got["rented_gpus"] >= got["average_gpus"] * (1 - 1e-9)
    assert got["p50_jct_s"] <= got["p95_jct_s"] <= got["p99_jct_s"] <= got["makespan_s"]
    known = POLICIES[policy]
    assert got["physics"]["interval_s"] == known.interval_s
    assert got["physics"]["learning"] == known.learning
    assert got["physics"]["slowdown"] == "sia"


@pytest.mark.parametrize("policy", ["boa", "pollux", "sia"])
def test_the_same_seed_gives_the_same_document(run: Boa, trace: Path, policy: str) -> None:
    flags = ["--policy", policy, *RUNS[policy], "--seed", 3, "--noise", 0.3]
    first, again = (run.json("simulate", trace, *flags) for _ in range(2))
    assert same(first) == same(again)
    flags[flags.index("--seed") + 1] = 4
    assert same(run.json("simulate", trace, *flags)) != same(first)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--policy", "bob"], "--policy: got 'bob'; expected one of boa, fixed, pollux"),
        (["--policy", "boa"], "--policy boa needs --budget"),
        (["--policy", "boa", "--budget", "0"], "--budget: got '0'"),
        (["--policy", "boa", "--budget", "nan"], "--budget: got 'nan'"),
        (["--policy", "boa", "--budget", "40", "--width", "3"], "does not take --width"),
        (["--policy", "boa", "--budget", "40", "--learning", "job"], "--learning job"),
        (["--policy", "fixed", "--width", "0"], "--width: got '0'"),
        (["--policy", "fixed", "--width", "65"], "--width: got 65; expected a width that every"),
        (["--policy", "pollux"], "--policy pollux needs --nodes"),
        (["--policy", "pollux", "--nodes", "T4"], "--nodes: got 'T4'; expected nodes per GPU"),
        (["--policy", "pollux", "--nodes", "T4=0"], "--nodes T4: got '0'"),
        (["--policy", "pollux", "--nodes", "T4=1.5"], "--nodes T4: got '1.5'"),
        (["--policy", "pollux", "--nodes", "T4=1,T4=2"], "--nodes: got 'T4=1,T4=2'"),
        (["--policy", "pollux", "--nodes", "H900=1"], "--nodes: got 'H900'; expected a GPU type"),
        (["--policy", "pollux", "--nodes", "T4=1,A100=1"], "runs on one GPU type"),
        (["--policy", "pollux", "--nodes", "T4=1", "--gpus", "A100"], "--nodes: got 'T4'"),
        (["--policy", "pollux", "--nodes", "T4=4", "--interval-s", "0"], "--interval-s 0"),
        (["--policy", "sia-autoscale", "--target-efficiency", "1.1"], "--target-efficiency"),
        (["--policy", "sia-autoscale", "--target-efficiency", "0"], "--target-efficiency"),
        (["--policy", "scavenger"], "--policy scavenger needs --knob"),
        (["--policy", "scavenger", "--knob", "0"], "--knob: got '0'; expected a number above 0"),
        (["--policy", "scavenger", "--knob", "1.5"], "--knob: got 1.5; expected a number above 0"),
        (["--policy", "efficiency", "--knob", "0.5"], "--policy efficiency needs --target-effic"),
        ([*FIXED, "--symmetric"], "--symmetric is for gavel, gavel-maxmin, themis, not for --pol"),
        ([*FIXED, "--knob", "1"], "--policy fixed does not take --knob"),
        ([*FIXED, "--gpus", "H900"], "--gpus: got 'H900'; expected a GPU type with profiles: T4"),
        ([*FIXED, "--gpus", "T4,T4"], "--gpus: got 'T4,T4'"),
        ([*FIXED, "--gpus", "T4,"], "--gpus: got 'T4,'"),
        ([*FIXED, "--prices", "V100=2"], "--prices: got 'V100'; expected one of the GPU types: T4"),
        ([*FIXED, "--prices", "T4=free"], "--prices T4: got 'free'"),
        ([*FIXED, "--perfect", "--noise", "0.1"], "--perfect and --noise"),
        ([*FIXED, "--perfect", "--learning", "job"], "leave out --learning"),
        ([*FIXED, "--noise", "-1"], "--noise: got '-1'"),
        ([*FIXED, "--noise", "inf"], "--noise: got 'inf'"),
        ([*FIXED, "--learning", "none"], "--learning: got 'none'"),
        ([*FIXED, "--seed", "-1"], "--seed: got '-1'"),
        ([*FIXED, "--interval-s", "0.2"], "--interval-s: got '0.2'"),
        ([*FIXED, "--rescale-s", "-1"], "--rescale-s: got '-1'"),
        ([*FIXED, "--provision-s", "1e99"], "--provision-s: got '1e99'"),
        ([*FIXED, "--reclaim-s", "x"], "--reclaim-s: got 'x'"),
        ([*FIXED, "--cold-s", "nan"], "--cold-s: got 'nan'"),
        ([*FIXED, "--interference", "1"], "--interference: got '1'"),
        ([*FIXED, "--slowdown", "much"], "--slowdown: got 'much'"),
        (
            [*FIXED, "--max-spend", "9"],
            "does not run --policy fixed; it runs boa, pollux-autoscale",
        ),
        ([*FIXED, "--keep-warm-s", "-1"], "--keep-warm-s: got '-1'"),
        ([*AUTOSCALED, "--pacing-h", "24"], "--pacing-h steers a budget, and --policy sia-autos"),
        ([*BOA, "--pacing-h", "0"], "--pacing-h: got '0'; expected hours from 0.1"),
        ([*BOA, "--max-nodes", "A100=2"], "--max-nodes: got 'A100'; expected a GPU type that can"),
        ([*BOA, "--max-nodes", "T4=0"], "--max-nodes T4: got '0'"),
        ([*BOA, "--max-spend", "0"], "--max-spend: got '0'"),
        (
            [*BOA, "--max-spend", "3"],
            "--max-spend: got 3.0; expected at least 4: the cheapest node",
        ),
        ([*BOA, "--max-spend", "9", "--interval-s", "60"], "--interval-s is not for --policy boa"),
        ([*BOA, "--billing", "cpu"], "--billing: got 'cpu'; expected one of gpu, node"),
        (
            [*BOA, "--billing", "node", "--interval-s", "0"],
            "--interval-s 0 (act at events alone) is not for --policy boa with --billing node",
        ),
        ([*FIXED, "--learning", "service"], "does not run --policy fixed"),
        ([*FIXED, "--events", "/nowhere/e"], "--events /nowhere/e: there is no folder"),
        ([*FIXED, "--jcts", "/"], "--jcts /: is a folder"),
        ([*FIXED, "--plot", "a.gif"], "--plot: got 'a.gif'"),
        ([*FIXED, "--profiles", "/nowhere"], "/nowhere: no such folder"),
    ],
)
def test_bad_input_is_one_line_that_names_the_flag(
    run: Boa, trace: Path, flags: list[str], said: str
) -> None:
    assert run("simulate", trace, *flags, code=2) == ""
    assert run.err.startswith("error: ")
    assert run.err.count("\n") == 1
    assert said in run.err


@pytest.mark.parametrize(
    ("text", "flags", "said"),
    [
        ("a,0,bert,\nb,9,alexnet,", FIXED, "line 3 (b), column application: got 'alexnet'"),
        ("a,0,bert,\nb,9,bert,900", ["--policy", "reservation"], "line 3 (b), column gpus: got"),
        (
            "a,0,bert,\nb,9,bert,32",
            ["--policy", "tiresias", "--nodes", "T4=2"],
            "got 32; expected at most the 8 T4s of --nodes",
        ),
        ("a,0,vit,\nb,9,vit,", [*FIXED, "--gpus", "A800"], "line 2 (a), column steps"),
        ("a,0,bert,\nb,0,bert,", ["--policy", "boa", "--budget", 9], "arrivals that spread"),
    ],
)
def test_a_trace_that_cannot_be_replayed_is_named(
    run: Boa, tmp_path: Path, text: str, flags: list[str], said: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(f"name,arrival_s,application,gpus\n{text}\n")
    run("simulate", path, *flags, code=2)
    assert run.err.startswith(f"error: {path}: ")
    assert said in run.err


def test_a_budget_that_is_too_small_is_exit_code_3_and_writes_nothing(
    run: Boa, trace: Path, tmp_path: Path
) -> None:
    events = tmp_path / "e.jsonl"
    flags = ["--policy", "boa", "--budget", 1, "--events", events, "--json"]
    assert run("simulate", trace, *flags, code=3) == ""
    assert "the cheapest plan spends" in run.err
    assert list(tmp_path.glob("*e.jsonl*")) == []


def integrals(events: Iterable[Mapping[str, Any]], per_node: int) -> tuple[float, float]:
    """GPU-hours held by jobs, and rented."""
    held: dict[str, tuple[float, int]] = {}
    rented: dict[int, float] = {}
    busy = paid = 0.0
    for event in events:
        now = event["time_s"]
        if event["event"] in ("start", "rescale", "stop", "finish"):
            since, width = held.pop(event["job"], (now, 0))
            busy += (now - since) * width
            if "width" in event:
                held[event["job"]] = (now, event["width"])
                assert sum(count for _, count in event["nodes"]) == event["width"]
                assert {node for node, _ in event["nodes"]} <= set(rented)
        elif event["event"] == "rent":
            rented[event["node"]] = now
        elif event["event"] == "release":
            paid += (now - rented.pop(event["node"])) * per_node
    assert not held
    assert not rented
    return busy / 3600, paid / 3600


@pytest.mark.parametrize("policy", ["boa", "fixed", "pollux", "sia-autoscale"])
def test_the_events_add_up_to_the_gpu_hours(
    run: Boa, trace: Path, tmp_path: Path, policy: str
) -> None:
    path = tmp_path / "events.jsonl"
    got = run.json("simulate", trace, "--policy", policy, *RUNS[policy], "--events", path)
    assert run.err == f"events written to {path}\n"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    busy, paid = integrals(events, per_node=4)
    assert busy == pytest.approx(got["gpu_hours"])
    assert paid == pytest.approx(got["rented_gpus"] * SPAN_H)
    kinds = [event["event"] for event in events]
    assert kinds.count("arrive") == kinds.count("finish") == JOBS
    assert kinds.count("rescale") == pytest.approx(got["rescalings_per_job"] * JOBS)


def test_every_job_s_jct_can_be_had(run: Boa, trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "jcts.csv"
    got = run.json("simulate", trace, *FIXED, "--jcts", path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert list(rows[0]) == ["name", "class", "arrival_s", "jct_s"]
    assert [row["name"] for row in rows] == [f"job-{n}" for n in range(JOBS)]
    assert {row["class"] for row in rows} == {"resnet18", "neumf"}
    mean = sum(float(row["jct_s"]) for row in rows) / JOBS
    assert mean == pytest.approx(got["average_jct_s"])


def test_a_person_reads_figures_with_units_the_promise_and_the_physics(
    run: Boa, trace: Path
) -> None:
    printed = run("simulate", trace, "--policy", "boa", "--budget", 12, "--provision-s", 45)
    said = " ".join(printed.split())
    for words in (
        "boa with a budget of 12 GPUs",
        "T4 (4 per node)",
        "8, arrived within 1 h 45 min; all of them ended",
        "average JCT",
        "; planned ",
        "P50",
        "P99",
        "held by jobs",
        "rented",
        "per job after its start",
        "queueing",
        "efficiency",
        "at events, classes learn together",
        "Sia's slowdown, booting 45 s; without cold starts",
        "resnet18",
    ):
        assert words in said
    assert "\x1b" not in printed
    assert not any(line.endswith(" ") for line in printed.splitlines()[:13])


def test_several_types_are_counted_in_dollars(run: Boa, trace: Path) -> None:
    flags = ["--policy", "sia", "--nodes", "T4=2,A100=1"]
    got = run.json("simulate", trace, *flags)
    assert [gpu["name"] for gpu in got["gpu_types"]] == ["T4", "A100"]
    assert set(got["gpu_hours_by_type"]) <= {"T4", "A100"}
    assert got["spend_per_hour"] > 1.01 * got["average_gpus"]
    assert "$3.40 per GPU-hour" in run("simulate", trace, *flags)
    dear = run.json("simulate", trace, *FIXED, "--prices", "T4=2.5")
    assert dear["spend_per_hour"] == pytest.approx(2.5 * dear["average_gpus"])


def test_the_physics_does_what_it_is_asked_to(run: Boa, trace: Path) -> None:
    def jct(*flags: object) -> Any:
        return run.json("simulate", trace, *FIXED, "--interval-s", 0, *flags)

    plain = jct()
    assert plain["physics"]["interval_s"] is None
    assert plain["average_queueing_s"] == 0, "at events nobody waits for a round"
    assert jct("--rescale-s", 0)["average_jct_s"] < plain["average_jct_s"]
    slower = jct("--rescale-s", 1000)
    assert slower["rescaling_s_per_job"] == pytest.approx(1000)
    # A node that is released after its job costs every job the time to get another.
    waits = jct("--provision-s", 500, "--cold-s", 7)
    assert waits["average_jct_s"] == pytest.approx(plain["average_jct_s"] + 507, rel=1e-6)
    assert jct("--reclaim-s", 60)["reclaiming_gpus"] > 0
    assert jct("--slowdown", "none")["average_jct_s"] < plain["average_jct_s"]
    assert jct("--perfect")["physics"]["learning"] == "perfect"
    assert jct("--learning", "class")["physics"]["learning"] == "class"


def test_rubick_s_models_run_without_slowdown_on_a800(run: Boa, tmp_path: Path) -> None:
    path = tmp_path / "rubick.csv"
    path.write_text(
        f"{RUBICK_HEAD}v-0,0,3163.1,vit,2,16,0,zero-dp,3723,0\n"
        "g-1,1639,142.2,gpt2,8,64,0,zero-dp,90,0\n"
    )
    got = run.json("simulate", path, "--policy", "rubick", "--nodes", "A800=2")
    assert (got["completed"], got["physics"]["slowdown"]) == (2, "none")
    run("simulate", path, "--policy", "fixed", "--width", 4)


def test_jobs_that_never_get_gpus_end_the_run_with_exit_code_1(run: Boa, tmp_path: Path) -> None:
    path = tmp_path / "stuck.csv"
    # Guaranteed 48 GPUs, which it could do without: only Rubick insists, and there are 32.
    path.write_text(
        f"{RUBICK_HEAD}v-0,0,3163.1,vit,2,16,0,zero-dp,3723,0\n"
        "l-1,1639,142.2,llama30,48,384,1.25,344,64,1\n"
    )
    flags = ["--policy", "rubick", "--nodes", "A800=4"]
    got = json.loads(run("simulate", path, *flags, "--json", code=1))
    assert (got["jobs"], got["completed"]) == (2, 1)
    assert "error: 1 of 2 jobs never ended: rubick gave them no GPUs" in run.err
    assert "1 of them ended" in run("simulate", path, *flags, code=1)
    run("simulate", path, "--policy", "rubick", "--nodes", "A800=2", code=2)
    assert "--nodes: got 'A800=2'; expected room for llama30: at least 24 A800s" in run.err


def test_one_job_alone_can_be_simulated(run: Boa, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("name,arrival_s,application\na,0,ncf\n")
    got = run.json("simulate", path, "--policy", "fixed", "--width", 2, "--interval-s", 0)
    assert got["average_jct_s"] == got["makespan_s"] > 0
    assert got["average_gpus"] == pytest.approx(2), "over its makespan: it arrives in no time"
    assert run("simulate", path, "--policy", "fixed", "--width", 2)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "html"])
def test_the_pictures_are_files_of_the_kind_asked_for(
    run: Boa, trace: Path, tmp_path: Path, suffix: str
) -> None:
    beginning = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!doctype html>"}
    one, many = tmp_path / f"one.{suffix}", tmp_path / f"many.{suffix}"
    run.json("simulate", trace, *FIXED, "--plot", one)
    assert run.err == f"picture written to {one}\n"
    sweep = ["--policies", "boa,fixed", "--budgets", "8,14", "--widths", "4,8", "--jobs", 1]
    run.json("compare", trace, *sweep, "--plot", many)
    assert run.err == f"comparison written to {many}\n"
    for path in (one, many):
        assert path.read_bytes().startswith(beginning[suffix])


def test_both_commands_teach_with_examples(run: Boa) -> None:
    for command in ("simulate", "compare"):
        said = run(command, "--help")
        assert f"$ boa {command}" in said
        assert "--json" in said


def test_boa_keeps_its_promise_on_newtrace(run: Boa, shared_data: Path) -> None:
    trace = shared_data / "sia" / "workloads" / "newtrace" / "workload-1.csv"
    flags = ["--gpus", "T4", "--profiles", shared_data / "sia" / "traces"]
    got = run.json("simulate", trace, "--policy", "boa", "--budget", 140, *flags)
    assert (got["jobs"], got["completed"]) == (960, 960)
    assert got["planned_spend_per_hour"] == pytest.approx(140)
    assert got["spend_per_hour"] == pytest.approx(140, rel=0.04)
    assert got["average_jct_s"] == pytest.approx(got["planned_jct_s"], rel=0.04)
    assert got["average_queueing_s"] == 0


def test_by_the_node_the_budget_is_told_beside_the_bill(run: Boa, trace: Path) -> None:
    flags = [*BOA, "--perfect", "--billing", "node", "--provision-s", 60]
    got = run.json("simulate", trace, *flags)
    assert (got["completed"], got["physics"]["billing"]) == (JOBS, "node")
    assert got["physics"]["interval_s"] == 60.0
    assert got["jct_over_bound"] == pytest.approx(got["average_jct_s"] / got["bound_jct_s"])
    said = run("simulate", trace, *flags)
    for words in (
        "for whole nodes: ",
        " booting",
        "at this bill; the average JCT is ",
        "at events",
    ):
        assert words in said


def test_every_report_has_its_bill_and_bound(run: Boa, trace: Path) -> None:
    got = run.json("simulate", trace, *FIXED, "--reclaim-s", 60)
    billed = got["rented_spend_per_hour"] + got["reclaiming_spend_per_hour"]
    assert got["bill_per_hour"] == pytest.approx(billed)
    assert {"bound_jct_s", "jct_over_bound", "idle_spend_per_hour"} <= set(got)
    assert got["booting_spend_per_hour"] == 0
