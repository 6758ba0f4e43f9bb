"""`boa submit`: hand a job to the service."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import options, shell
from boa.cli.console import emit_json, note
from boa.cli.live.job_options import JobOptions, absolute
from boa.cli.live.service import connect, page_of, where_to_look
from boa.cli.live.sweep_options import SweepOptions
from boa.cli.live.sweep_submit import has_sweep, submit_sweep
from boa.cli.live.term_options import TermOptions, with_terms
from boa.cli.options import Json
from boa.errors import InputError, UsageError, shown
from boa.model.job_spec import JobSpec

if TYPE_CHECKING:
    from boa.api.answers import JobDetails
    from boa.client import Client

STOPPED, SIGNALLED, INTERRUPTED = 143, 128, 130
JOB_FILES = (".yaml", ".yml", ".json")
NEEDS_CLASS = "a command needs --class NAME: boa submit --class NAME -- COMMAND..."


WORDS = shell.Argument(
    metavar="JOB.yaml... | -- COMMAND...",
    help="Job files (`boa schema job` describes them); or, with --class, a command.",
)


def submit(
    words: Annotated[list[str], WORDS],
    *,
    job_class: Annotated[
        str | None,
        shell.Option("--class", metavar="NAME", help="Jobs that share model and data."),
    ] = None,
    about: JobOptions,
    limits: TermOptions,
    sweeps: SweepOptions,
    terms: Annotated[
        bool,
        shell.Option("--terms", help="Say what it would take and cost; submit nothing."),
    ] = False,
    wait: Annotated[
        bool, shell.Option("--wait", help="Show its log, and end with its exit code.")
    ] = False,
    estimate: Annotated[
        bool, shell.Option("--estimate", help="Say what it would take, and submit nothing.")
    ] = False,
    probe: Annotated[
        bool,
        shell.Option(
            "--probe",
            help="The same; a class that nobody knows is run for a few minutes first.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Submit a job, and print its id.

    The id is all that is on stdout; stderr says where to look: the commands
    that show the job and its log, and its page where there is a dashboard.
    Several job files are submitted at once, all of them or none; an id a line.

    The job is a command and its class. It starts when GPUs are there for it.
    If it can checkpoint (into $BOA_CHECKPOINT_DIR), BOA may stop it (SIGTERM)
    and start it again on other GPUs. If it cannot, it keeps its GPUs.

    A job sees the usual variables of the service's environment (PATH, CUDA_*
    and the like) and no others: give it what it needs by --env, and tokens and
    passwords by --secret.

    With --package (package: workdir in a file) the folder is packed and sent,
    named by the hash of what is in it: the job runs in a copy of its own,
    whatever becomes of the folder meanwhile. .boaignore says what stays here.
    Files that it leaves in $BOA_ARTIFACTS are kept (boa artifacts).

    --estimate tells time, cost, width by epoch and what waits before it, as
    the class was learned; for a class that nobody knows it offers a short
    probe, which --probe runs: on the fewest GPUs, stopped when it has told
    enough of itself, and thrown away.
    --priority, --after, --max-time, --max-cost, --deadline, --may-wait, --key
    and --tag also go with a job file. What limits and a deadline come to is said before;
    --terms says it and submits nothing.

    --sweep submits a job for every combination of values, in one class and one
    line of boa ps, and prints the sweep's id. {NAME} in the command is replaced
    by its value; else --NAME VALUE is added to it.

    --wait shows what rank 0 prints until the job ends, then ends with the
    job's exit code (128 + n after signal n, 143 if it was stopped). Ctrl-C
    leaves the job running.

    [bold]Examples[/bold]
    [dim]$[/dim] boa submit job.yaml
    [dim]$[/dim] boa submit --class resnet18 --max-gpus 8 -- python train.py --lr 0.1
    [dim]$[/dim] boa submit job.yaml --estimate
    [dim]$[/dim] boa submit job.yaml --wait
    [dim]$[/dim] boa submit job.yaml --after 12,13 --max-cost 40 --key nightly-0711
    [dim]$[/dim] boa submit job.yaml --deadline 6h --terms
    [dim]$[/dim] boa submit job.yaml --priority background
    [dim]$[/dim] boa submit job.yaml --may-wait 12h
    [dim]$[/dim] boa submit job.yaml --sweep lr=1e-4,3e-4 --sweep seed=1..5 --halving loss
    [dim]$[/dim] boa submit sweep/*.yaml
    [dim]$[/dim] boa submit --class a --package --environment conda:torch -- python train.py
    [dim]$[/dim] id=$(boa submit job.yaml); boa logs -f $id
    """
    given, bounds = about.given(), limits.given()
    if estimate or probe:
        from boa.cli.live.estimate import show_estimate

        if wait or terms or sweeps.given():
            problem = "--wait, --terms and --sweep do not go with an estimate, which is of one job"
            raise UsageError(f"{problem}: nothing is submitted.")
        alone = job_class is None
        spec = _from_file(words, given) if alone else _command(job_class or "", words, given)
        show_estimate(bounded(spec, bounds), probe=probe, json=json)
        return
    if job_class is None and len(words) > 1 and all(Path(w).suffix in JOB_FILES for w in words):
        if bounds or terms:
            raise UsageError("--after, --max-…, --deadline, --key, --tag, --terms go with one job.")
        _submit_files(words, given, wait=wait, json=json)
        return
    sweep = sweeps.given()
    if sweep or (job_class is None and len(words) == 1 and has_sweep(words[0])):
        if terms or wait or (job_class is None and given):
            raise UsageError("a sweep goes without --wait and --terms; a file says all itself.")
        command = None if job_class is None else _command(job_class, words, given)
        submit_sweep(command or words[0], sweep, bounds, json=json)
        return
    spec = _from_file(words, given) if job_class is None else _command(job_class, words, given)
    spec = bounded(spec, bounds)
    if terms:
        print_terms(spec, json=json)
        return
    job, page = _submitted(spec, wait=wait, json=json)
    if json:
        emit_json({"job": job, **({"url": page} if page else {})})
    if wait:
        raise shell.Exit(mirrored(job))


def _submit_files(words: list[str], given: dict[str, Any], *, wait: bool, json: bool) -> None:
    if wait:
        raise UsageError("--wait goes with one job.")
    specs = [_from_file([word], given) for word in words]
    with connect() as client:
        ids = client.submit_many(specs)
        page = page_of(client)
    if json:
        emit_json({"ids": ids, **({"url": page} if page else {})})
    else:
        print("\n".join(ids), flush=True)
        where_to_look(f"{len(ids):,} jobs", "boa ps", f"boa show {ids[0]}", page)


def _submitted(spec: JobSpec, *, wait: bool, json: bool) -> "tuple[JobDetails, str | None]":
    """The job as the service has it, once it has ended if that is waited for; its page."""
    with connect() as client:
        if spec.max_cost or spec.max_time_s or spec.deadline_s:  # told before the money
            for said in client.terms(spec)["words"]:
                note(said)
        job = client.submit(spec)
        name = job["id"]
        if not json:
            print(name, flush=True)
        page = page_of(client, name)
        if wait:
            return _follow(client, name, sys.stderr if json else sys.stdout), page
        if not json:
            where_to_look(f"job {name}", f"boa show {name}", f"boa logs -f {name}", page)
        return job, page


def bounded(spec: JobSpec, terms: dict[str, Any]) -> JobSpec:
    """The job with these terms, which go before those of its file."""
    from boa.formats.job import job_document, read_job_spec

    if not terms:
        return spec
    given = job_document(spec)
    if "priority" in terms and (given.get("weight") == 1.0 or "priority" in given):
        given.pop("weight", None)  # nobody said that one
    return read_job_spec(with_terms(given, terms))


def print_terms(spec: JobSpec, *, json: bool) -> None:
    with connect() as client:
        found = client.terms(spec)
    if json:
        emit_json(found)
    else:
        from boa.cli.live.estimate import print_priorities

        print("\n".join(found["words"]))
        if found.get("priorities"):  # an older service has none
            print_priorities(found["priorities"])


def _from_file(words: list[str], given: dict[str, Any]) -> JobSpec:
    from boa.formats.job import load_job

    if given:
        named = "gpus" if "gpus" in given else next(iter(given))
        option = "--secret" if named == "secrets" else f"--{named.replace('_', '-')}"
        raise UsageError(f"{option} goes with --class; a job file says it all itself.")
    if len(words) != 1:
        raise UsageError(NEEDS_CLASS)
    path = Path(words[0])
    try:
        return options.read(load_job, path)
    except InputError as wrong:
        if path.suffix in JOB_FILES:
            raise
        found = str(wrong) if os.path.exists(path) else f"{shown(words[0])} is no file"
        raise UsageError(f"{found}; and {NEEDS_CLASS}") from None


def _command(job_class: str, words: list[str], given: dict[str, Any]) -> JobSpec:
    from boa.formats.job import read_job_spec

    path = Path(words[0])
    if all(Path(word).suffix in JOB_FILES and os.path.isfile(word) for word in words):
        raise UsageError(
            f"{path} is a job file, and --class goes with a command. Submit the file alone (boa "
            f"submit {path}; it names its class itself), or a command: boa submit --class "
            f"{job_class} -- COMMAND..."
        )
    if "workdir" not in given:
        given = {"workdir": absolute(Path()), **given}
    if [Path(word).name for word in words[:2]] == ["boa", "wrap"]:
        given = {"launcher": "single", **given}  # it starts the others itself
    return read_job_spec({"class": job_class, "run": words, **given})


def _follow(client: "Client", job: str, out: Any) -> "JobDetails":
    try:
        for text in client.logs(job, follow=True):
            out.write(text)
            out.flush()
        return client.wait(job)
    except KeyboardInterrupt:
        note(f"job {job} goes on: boa logs -f {job} shows it, boa stop {job} stops it")
        raise shell.Exit(INTERRUPTED) from None


def mirrored(job: "JobDetails") -> int:
    """The exit code of a job as a shell would have it."""
    code = job["exit_code"]
    if job["state"] == "succeeded":
        return 0
    if job["state"] == "stopped":
        return STOPPED
    return 1 if not code else code if code > 0 else SIGNALLED - code
