"""Every command by its name: where it is, and what it is for in one line.

What stands here is all that `boa --help` loads. A test holds each line against the command's own
help.
"""

from boa.cli.shell import Entry

LIVE = "A running service"

COMMANDS = (
    Entry(
        "plan",
        "boa.cli.plan.plan:plan",
        "Find the plan with the shortest average JCT that a budget can buy, and prove it.",
    ),
    Entry(
        "evaluate",
        "boa.cli.plan.evaluate:evaluate",
        "Compute average JCT and spend of any plan: one of ours, edited, or written by hand.",
    ),
    Entry(
        "frontier",
        "boa.cli.plan.frontier:frontier",
        "Show the best average JCT that each budget can buy. Rents nothing.",
    ),
    Entry(
        "budget",
        "boa.cli.plan.budget:command",
        "Find the least budget at which jobs take SECONDS on average.",
    ),
    Entry(
        "workload",
        "boa.cli.plan.workload:app",
        "Make a workload file from a trace, or see what is in one.",
    ),
    Entry(
        "trace",
        "boa.cli.simulate.trace:app",
        "Make a trace, see what is in one, or turn one into our own format.",
    ),
    Entry(
        "simulate",
        "boa.cli.simulate.simulate:simulate",
        "Replay a trace under a policy, on measured speeds. Rents nothing.",
    ),
    Entry(
        "compare",
        "boa.cli.simulate.compare:compare",
        "Compare policies on one trace, at the same average spend.",
    ),
    Entry(
        "paper",
        "boa.cli.simulate.paper:app",
        "Redo the paper's evaluation: every figure and table beside its claim.",
    ),
    Entry(
        "offers",
        "boa.cli.plan.offers:offers",
        "List GPU instances that can be rented, with their prices. Rents nothing.",
    ),
    Entry(
        "schema",
        "boa.cli.plan.schema:schema",
        "Print the JSON Schema (draft 2020-12) of one of our formats.",
    ),
    Entry(
        "completion",
        "boa.cli.live.completion:completion",
        "Print what makes a shell complete our commands and options.",
    ),
    Entry(
        "demo",
        "boa.cli.live.demo:demo",
        "Run the service for a minute and a half: nothing to prepare, nothing paid.",
    ),
    Entry(
        "serve",
        "boa.cli.live.serve:serve",
        "Run the service: take jobs, rent nodes, keep the budget.",
        LIVE,
    ),
    Entry("submit", "boa.cli.live.submit:submit", "Submit a job, and print its id.", LIVE),
    Entry("ps", "boa.cli.live.ps:ps", "List the jobs of the service, newest first.", LIVE),
    Entry(
        "show",
        "boa.cli.live.show:show",
        "Show a job with its last events, or what was learned of a class.",
        LIVE,
    ),
    Entry(
        "class",
        "boa.cli.live.job_class:app",
        "Have widths tried again at which jobs of a class failed.",
        LIVE,
    ),
    Entry(
        "logs",
        "boa.cli.live.logs:logs",
        "Print what a job printed: rank 0, over all its runs.",
        LIVE,
    ),
    Entry(
        "events",
        "boa.cli.live.events:events",
        "Show what happened, oldest first: starts, ends, failures, nodes, plans.",
        LIVE,
    ),
    Entry(
        "artifacts",
        "boa.cli.live.artifacts:app",
        "List and fetch files that jobs leave in $BOA_ARTIFACTS.",
        LIVE,
    ),
    Entry(
        "stop",
        "boa.cli.live.stop:stop",
        "Stop jobs: SIGTERM, their grace time, then SIGKILL.",
        LIVE,
    ),
    Entry(
        "job",
        "boa.cli.live.job:app",
        "Change a job that is there, pause it, resume it, submit it again.",
        LIVE,
    ),
    Entry(
        "sweep",
        "boa.cli.live.sweep:app",
        "List sweeps, look at one with its jobs, stop one.",
        LIVE,
    ),
    Entry(
        "nodes",
        "boa.cli.live.nodes:nodes",
        "List the nodes that are paid for, and the jobs on them.",
        LIVE,
    ),
    Entry(
        "cost",
        "boa.cli.live.cost:cost",
        "Show what was spent, what is being spent, and what the month will cost.",
        LIVE,
    ),
    Entry(
        "store",
        "boa.cli.live.store:app",
        "Check the service's database, copy it, put a copy back.",
        LIVE,
    ),
    Entry(
        "token",
        "boa.cli.live.token:app",
        "Give out tokens with roles, list them, take them back.",
        LIVE,
    ),
    Entry(
        "audit",
        "boa.cli.live.audit:audit",
        "Show who changed what, when and from where; and what was refused.",
        LIVE,
    ),
    Entry(
        "secret",
        "boa.cli.live.secret:app",
        "Set, list and remove secrets: what jobs get and nobody is shown.",
        LIVE,
    ),
    Entry(
        "saved",
        "boa.cli.live.saved:saved",
        "Say what BOA saved in a month against fixed widths. Simulated by the service.",
        LIVE,
    ),
    Entry(
        "statement",
        "boa.cli.live.statement:statement",
        "Show a month's bill, and who spent what on which class.",
        LIVE,
    ),
    Entry(
        "notify",
        "boa.cli.live.notify:app",
        "List whom notices go to, and send them a test.",
        LIVE,
    ),
    Entry(
        "wrap",
        "boa.cli.live.wrap:wrap",
        "Run an unchanged training script as an elastic job.",
        LIVE,
    ),
    Entry(
        "replay",
        "boa.cli.live.replay:app",
        "Act out measured models as real processes, in compressed time.",
        LIVE,
    ),
)
