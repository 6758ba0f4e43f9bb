"""Events by kind and fields, and the sentence of each: every code of every kind once."""

from typing import Any

from boa.model.events import EventKind

ENDED = {"name": "net", "jct_s": 59.6, "cost_usd": 0.314}
START = {
    "name": "net",
    "job_class": "resnet18",
    "attempt": 2,
    "gpu_type": "T4",
    "width": 4,
    "epoch": 2,
    "epochs": 5,
}
LIMIT = "job 3 (net) is stopped: its limit on cost is reached ($39.90 of $40.00)"
SHORT = {"name": "net", "gpu_type": "T4", "width": 8}
PLANNED = {"number": 7, "average_jct_s": 1234.5, "spend_per_hour": 8.0, "wall_s": 0.0123}
SAID: list[tuple[EventKind, dict[str, Any], str]] = [
    ("submitted", {"name": "a", "job_class": "a"}, "job 3 (a) was submitted"),
    ("submitted", {"name": "a", "job_class": "b"}, "job 3 (a) was submitted, of class b"),
    ("started", {**START, "why": "first"}, "job 3 (net) → 4×T4: first start"),
    (
        "started",
        {**START, "why": "first", "planned_width": 8, "planned_gpu_type": "T4"},
        "job 3 (net) → 4×T4: first start; GPUs are short (8 planned)",
    ),
    (
        "rescaled",
        {**START, "why": "epoch", "for_epoch": 2, "saves_s": 212.4, "extra_usd": 0.312},
        "job 3 (net) → 4×T4: epoch 3 begins; saves 3.5 min for $0.31",
    ),
    ("rescaled", {**START, "why": "plan"}, "job 3 (net) → 4×T4: a new plan"),
    (
        "preempted",
        {
            "name": "net",
            "why": "job",
            "by_job": "9",
            "gpu_type": "T4",
            "width": 4,
            "saves": False,
            "lost_s": 111.2,
        },
        "job 3 (net) was preempted by job 9; it gives up 4×T4; 1.9 min of work is lost "
        "unless it saves a checkpoint first",
    ),
    *(
        (
            "preempted",
            {
                "name": "net",
                "why": why,
                "gpu_type": "T4",
                "width": 4,
                "saves": True,
                "lost_s": 0.0,
            },
            f"job 3 (net) was preempted: {said}; it gives up 4×T4 once its checkpoint is saved",
        )
        for why, said in (
            ("room", "its GPUs are needed by jobs that pay for them, or given back"),
            ("node", "its node is taken back"),
            ("cap", "the hard cap on spend leaves no room"),
            ("ended", "the budget has ended"),
        )
    ),
    (
        "paused",
        {"name": "net", "lost_s": 111.2},
        "job 3 (net) was paused; 1.9 min of work is lost unless it saves a checkpoint first",
    ),
    ("rescaled", {**START, "why": "round"}, "job 3 (net) → 4×T4: GPUs are shared out anew"),
    (
        "rescaled",
        {**START, "why": "short", "planned_width": 2, "planned_gpu_type": "A100"},
        "job 3 (net) → 4×T4: GPUs are short (2×A100 planned)",
    ),
    ("rescaled", {**START, "why": "room"}, "job 3 (net) → 4×T4: GPUs are free again"),
    ("rescaled", {**START, "why": "nodes"}, "job 3 (net) → 4×T4: moves to other nodes"),
    ("rescaled", {**START, "why": "returned"}, "job 3 (net) → 4×T4: has GPUs again"),
    (
        "rescaled",
        {**START, "why": "widened", "before_width": 2, "saves_s": 120.2, "pause_s": 25.0},
        "job 3 (net) → 4×T4: 2 before; widened; saves 2 min, a pause of 25 s included",
    ),
    (
        "rescaled",
        {
            **START,
            "why": "squeezed",
            "before_width": 8,
            "saves_s": -60.4,
            "for_job": "9",
            "wait_s": 120.0,
        },
        "job 3 (net) → 4×T4: 8 before; squeezed for job 9, which would otherwise wait 2 min for a "
        "node; costs it 1 min",
    ),
    (
        "rescaled",
        {**START, "why": "moved", "before_width": 2, "before_gpu_type": "A100"},
        "job 3 (net) → 4×T4: 2×A100 before",
    ),
    (
        "restarted",
        {**START, "why": "again"},
        "job 3 (net) → 4×T4: starts again, having reached epoch 3 of 5",
    ),
    ("restarted", {**START, "epochs": 1}, "job 3 (net) → 4×T4: starts again"),
    ("stop", {"name": "net"}, "job 3 (net) was asked to stop"),
    (
        "stopped",
        {**ENDED, "exit_code": None, "why": "requested"},
        "job 3 (net) stopped: 1 min since submission, $0.31; stopped on request",
    ),
    (
        "succeeded",
        {**ENDED, "exit_code": 0},
        "job 3 (net) succeeded: 1 min since submission, $0.31",
    ),
    (
        "succeeded",
        {**ENDED, "cost_usd": 0.0042, "exit_code": 0},
        "job 3 (net) succeeded: 1 min since submission, $0.0042",
    ),
    (
        "succeeded",
        {**ENDED, "on_gpus_s": 15.0, "exit_code": 0},
        "job 3 (net) succeeded: 15 s on GPUs, 1 min since submission, $0.31",
    ),
    ("stop", {"name": "net", "why": "requested"}, "job 3 (net) was asked to stop"),
    (
        "stop",
        {"name": "net", "why": "max_time"},
        "job 3 (net) is stopped: its limit on time is reached",
    ),
    (
        "stop",
        {"name": "net", "why": "dependency", "detail": "job 2 failed"},
        "job 3 (net) is stopped: job 2 failed",
    ),
    (
        "stop",
        {"name": "net", "why": "halving"},
        "job 3 (net) is stopped: others of its sweep do better",
    ),
    (
        "stopped",
        {**ENDED, "exit_code": 0, "why": "max_cost"},
        "job 3 (net) stopped: 1 min since submission, $0.31; its limit on cost is reached",
    ),
    ("stop", {"name": "net", "why": "max_cost", "detail": "$39.90 of $40.00"}, LIMIT),
    (
        "stopped",
        {**ENDED, "exit_code": 0, "why": "max_time"},
        "job 3 (net) stopped: 1 min since submission, $0.31; its limit on time is reached",
    ),
    (
        "stopped",
        {**ENDED, "exit_code": None, "why": "dependency", "detail": "job 2 failed"},
        "job 3 (net) stopped: 1 min since submission, $0.31; job 2 failed",
    ),
    (
        "stopped",
        {**ENDED, "exit_code": 0, "why": "halving", "detail": "13 of 27"},
        "job 3 (net) stopped: 1 min since submission, $0.31; others of its sweep do better "
        "(13 of 27)",
    ),
    ("paused", {"name": "net"}, "job 3 (net) was paused"),
    (
        "paused",
        {"name": "net", "why": "sweep"},
        "job 3 (net) was paused: it waits until others of its sweep have got as far",
    ),
    ("resumed", {"name": "net"}, "job 3 (net) was resumed"),
    (
        "changed",
        {"name": "net", "fields": {"weight": 3.0, "gpus.max": 4, "max_cost": None}},
        "job 3 (net) was changed: weight 3, gpus.max 4, max_cost none",
    ),
    (
        "limit",
        {"name": "net", "why": "max_cost", "used": 32.0, "most": 40.0, "in_s": 300.0},
        "job 3 (net) is near its limit: $32.00 of $40.00; it is stopped in 5 min",
    ),
    (
        "limit",
        {"name": "net", "why": "max_time", "used": 80.0, "most": 100.0},
        "job 3 (net) is near its limit: 1.3 min of 1.7 min",
    ),
    (
        "deadline",
        {"name": "net", "why": "nears", "in_s": 3600.0, "takes_s": 3000.0, "urgency": 2.0},
        "job 3 (net) counts 2 times as much for its deadline in 1 h, takes 50 min",
    ),
    (
        "deadline",
        {"name": "net", "why": "out_of_reach", "in_s": 3600.0, "takes_s": 4000.0, "urgency": 8.0},
        "job 3 (net) will miss its deadline in 1 h, takes 1 h 7 min",
    ),
    (
        "deadline",
        {"name": "net", "why": "out_of_reach", "in_s": 53.0, "takes_s": 30.0, "boot_s": 40.0},
        "job 3 (net) may miss its deadline in 53 s, takes 30 s and 40 s more if a node has to boot",
    ),
    (
        "deadline",
        {"name": "net", "why": "out_of_reach", "in_s": 40.0, "boot_s": 0.016},
        "job 3 (net) may miss its deadline in 40 s: how long it takes is unknown",
    ),
    (
        "deadline",
        {"name": "net", "why": "missed", "in_s": -1.0},
        "job 3 (net) has missed its deadline: it goes on at its own weight",
    ),
    (
        "failed",
        {**ENDED, "exit_code": 2, "why": "exit_code", "failures": 4},
        "job 3 (net) failed: 1 min since submission, $0.31; exit code 2, 4 times without progress",
    ),
    (
        "failed",
        {**ENDED, "exit_code": None, "why": "processes_lost", "failures": 1},
        "job 3 (net) failed: 1 min since submission, $0.31; its processes were lost",
    ),
    (
        "retry",
        {
            "name": "net",
            "why": "engine",
            "detail": "no such command",
            "exit_code": None,
            "wait_s": 5.0,
            "failures": 1,
            "retries": 3,
        },
        "job 3 (net) failed (no such command): tried again in 5 s (1 of at most 3 times in a row)",
    ),
    (
        "retry",
        {"name": "net", "why": "node_lost", "detail": "gone", "exit_code": None, "wait_s": 5.0},
        "job 3 (net) lost a node (gone): it goes on elsewhere",
    ),
    (
        "retry",
        {"name": "net", "why": "run_lost", "detail": "gone", "exit_code": None, "wait_s": 5.0},
        "job 3 (net) lost its run (gone), which is no failure of its own: it is started "
        "again in 5 s, from its last checkpoint if it has one",
    ),
    (
        "retry",
        {"name": "net", "why": "not_ready", "detail": "no key", "exit_code": None, "wait_s": 9.0},
        "job 3 (net) could not be started (no key), which is no failure of its own: tried again "
        "in 9 s",
    ),
    (
        "retry",
        {
            "name": "net",
            "why": "width_failed",
            "detail": "exit code 1: CUDA out of memory",
            "exit_code": 1,
            "wait_s": 0.0,
            "gpu_type": "A100",
            "width": 2,
            "across_nodes": False,
            "back_gpu_type": "A100",
            "back_width": 1,
        },
        "job 3 (net): 2×A100 failed (exit code 1: CUDA out of memory): goes back to 1×A100; this "
        "counts as no failure of the job's",
    ),
    (
        "retry",
        {
            "name": "net",
            "why": "asked",
            "said": "CUDA out of memory",
            "exit_code": 75,
            "wait_s": 0.0,
        },
        "job 3 (net) asked to be started again (CUDA out of memory), by exit code 75",
    ),
    (
        "retry",
        {
            "name": "net",
            "why": "exit_code",
            "said": "ValueError: no such file",
            "exit_code": 1,
            "wait_s": 5.0,
            "failures": 1,
            "retries": 3,
        },
        "job 3 (net) failed (exit code 1: ValueError: no such file): tried again in 5 s (1 of at "
        "most 3 times in a row)",
    ),
    (
        "node_rented",
        {"gpu_type": "T4", "gpus": 4, "price_per_hour": 2.104},
        "renting node 8: 4×T4 at $2.10/h",
    ),
    (
        "node_rented",
        {
            "gpu_type": "T4",
            "gpus": 4,
            "price_per_hour": 4.0,
            "saves_s": 310.2,
            "over_s": 480.0,
            "waiting": 2,
            "worth_per_hour": 6.1,
        },
        "renting node 8: 4×T4 at $4.00/h; 2 jobs wait; 8 min of it save jobs 5.2 min: "
        "worth $6.10/h",
    ),
    ("node_ready", {"gpu_type": "T4"}, "node 8 is ready (T4)"),
    (
        "node_released",
        {
            "gpu_type": "T4",
            "why": "unwanted",
            "price_per_hour": 4.0,
            "worth_per_hour": 0.4,
            "moved": ["12"],
            "pause_s": 25.0,
        },
        "giving node 8 back (T4): it was worth $0.40/h of the $4.00/h that it costs; job 12 moves "
        "(a pause of 25 s)",
    ),
    ("node_released", {"gpu_type": "T4", "why": "empty"}, "giving node 8 back (T4)"),
    ("node_released", {"gpu_type": "T4", "why": "unwanted"}, "giving node 8 back (T4)"),
    ("node_released", {"gpu_type": "T4", "why": "leaving"}, "giving node 8 back (T4)"),
    (
        "node_released",
        {"gpu_type": "T4", "why": "not_ready", "after_s": 1800.0},
        "giving node 8 back (T4): not ready after 30 min",
    ),
    (
        "node_leaving",
        {"gpu_type": "T4", "in_s": 119.6},
        "the cloud takes node 8 (T4) away in 2 min",
    ),
    ("node_gone", {"gpu_type": "T4"}, "node 8 (T4) is gone"),
    (
        "node_lost",
        {"gpu_type": "T4", "why": "taken_back"},
        "node 8 (T4) is lost: the cloud took it back",
    ),
    (
        "node_lost",
        {"gpu_type": "T4", "why": "unlisted"},
        "node 8 (T4) is lost: the cloud no longer lists it",
    ),
    ("node_lost", {"gpu_type": "T4", "why": "never_came"}, "node 8 (T4) is lost: it never came"),
    (
        "orphan",
        {"gpu_type": "T4"},
        "the cloud has a node that nobody wants (T4): giving it back",
    ),
    (
        "shortage",
        {"why": "refused", "gpu_type": "T4", "detail": "quota", "again_s": 60.0},
        "no T4 node to be had (quota); asking again in 1 min",
    ),
    (
        "shortage",
        {**SHORT, "why": "no_capacity", "most_nodes": 1, "detail": "quota"},
        "job 3 (net): waits for 8×T4: no more than 1 node of T4 can be had now (quota)",
    ),
    (
        "shortage",
        {**SHORT, "why": "max_nodes", "most_nodes": 2, "given_gpu_type": "T4", "given_width": 4},
        "job 3 (net): runs on 4 of 8×T4: no more than 2 nodes of T4 can be had now",
    ),
    (
        "shortage",
        {**SHORT, "why": "spend_cap", "given_gpu_type": "A100", "given_width": 2},
        "job 3 (net): runs on 2×A100 instead of 8×T4: another T4 node would cost more than the cap "
        "on the spend leaves",
    ),
    (
        "shortage",
        {**SHORT, "why": "part_cap", "detail": "vision's cap of $8.00/h leaves no more"},
        "job 3 (net): waits for 8×T4: vision's cap of $8.00/h leaves no more",
    ),
    (
        "shortage",
        {**SHORT, "why": "no_such_type"},
        "job 3 (net): waits for 8×T4: T4 cannot be rented here",
    ),
    (
        "planned",
        {**PLANNED, "gap": 0.0, "too_small_per_hour": None},
        "plan 7: jobs take 20.6 min on average, for $8.00/h (proven best; solved in 12 ms)",
    ),
    (
        "planned",
        {**PLANNED, "gap": 0.0, "too_small_per_hour": None, "unknown": True},
        "plan 7: no class is measured yet, so each job gets its fewest GPUs",
    ),
    (
        "planned",
        {**PLANNED, "gap": 0.012, "too_small_per_hour": 9.5},
        "plan 7: jobs take 20.6 min on average, for $8.00/h (at most 1.20% above the best; "
        "solved in 12 ms); the budget cannot keep up: the cheapest plan needs $9.50/h",
    ),
    (
        "budget",
        {"budget": 12.0, "before": 8.0, "max_spend": 30.0},
        "the budget is $12.00/h from now on; it was $8.00/h; never more than $30.00/h at a time",
    ),
    ("budget", {"budget": 12.0, "before": 12.0}, "the budget is $12.00/h from now on"),
    ("budget", {"budget": 12.0, "max_spend": None}, "no hard cap"),
    (
        "period",
        {"budget": 30.0, "period": "night"},
        "period night begins: the budget is $30.00/h",
    ),
    (
        "period",
        {"budget": 0.0, "period": None},
        "the budget has ended: no node is rented, and jobs stop and wait",
    ),
    (
        "used_up",
        {"each": "month", "usd": 499.99, "last_day": "2026-11-30"},
        "the budget for the month is used up: $499.99, meant to last through 2026-11-30",
    ),
    (
        "used_up",
        {"part": "vision", "each": "once", "usd": 1000.0, "last_day": "2027-03-31"},
        "vision's money in total is used up: $1,000.00, meant to last through 2027-03-31",
    ),
    (
        "clock",
        {"by_s": -7200.4},
        "the machine's clock was set by −2 h; the service's own time goes on",
    ),
    ("trouble", {"why": "cloud", "detail": "no answer"}, "trouble with the cloud: no answer"),
    ("trouble", {"why": "engine", "detail": "no answer"}, "trouble with the engine: no answer"),
    ("trouble", {"why": "store", "detail": "jobs lost: 4"}, "trouble with the store: jobs lost: 4"),
    ("trouble", {"why": "no_plan", "detail": "killed"}, "no plan could be made: killed"),
    (
        "trouble",
        {"why": "not_over", "name": "net", "detail": "process 7 (dd) of attempt 1 cannot be ended"},
        "job 3 (net) waits until its run is over: process 7 (dd) of attempt 1 cannot be ended",
    ),
    (
        "trouble",
        {"why": "one_process"},
        "job 3 is one process (launcher single), which sees the GPUs of its first node only: where "
        "it is spread over several, the others are paid for nothing. gpus.max: 1, or launcher "
        "workers or torchrun",
    ),
    (
        "trouble",
        {"why": "exit_code", "name": "net", "exit_code": 3},
        "job 3 (net) ended with exit code 3 when told to stop; it is started again, "
        "from its last checkpoint if it has one",
    ),
    (
        "trouble",
        {"why": "unit", "name": "net", "detail": "total_work is 19,200, its script's total 600"},
        "job 3 (net): total_work is 19,200, its script's total 600",
    ),
    ("other", {}, "something that this version has no words for"),
]
"""All sentences there are, of job 3 and node 8."""
