"""`boa submit`: hand a job to the service."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from boa.cli import options, shell
from boa.cli.console import console, emit_json, note
from boa.cli.live.service import connect, page_of, where_to_look
from boa.cli.live.sweep_options import SweepOptions
from boa.cli.live.sweep_submit import has_sweep, submit_sweep
from boa.cli.live.term_options import TermOptions, with_terms
from boa.cli.options import Json
from boa.errors import FileError, InputError, UsageError, shown
from boa.model.job_spec import PACK, JobSpec

if TYPE_CHECKING:
    from boa.api.answers import JobDetails
    from boa.client import Client

STOPPED, SIGNALLED, INTERRUPTED = 143, 128, 130
JOB_FILES = (".yaml", ".yml", ".json")
NEEDS_CLASS = "a command needs --class NAME: boa submit --class NAME -- COMMAND..."


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Fields of a job file, for a command without one."""

    name: Annotated[str | None, shell.Option("--name", metavar="N", help="For people.")] = None
    min_gpus: Annotated[
        int | None, shell.Option("--min-gpus", metavar="K", help="The fewest it can run on.")
    ] = None
    max_gpus: Annotated[
        int | None, shell.Option("--max-gpus", metavar="K", help="The most it may get.")
    ] = None
    gpus: Annotated[
        str | None,
        shell.Option("--gpus", metavar="T4,A100", help="GPU types it can run on; default: any."),
    ] = None
    launcher: Annotated[
        str | None,
        shell.Option(
            "--launcher",
            metavar="workers|torchrun|single",
            help="One process per GPU (default), one torchrun, or one process told its width.",
        ),
    ] = None
    epochs: Annotated[
        int | None, shell.Option("--epochs", metavar="N", help="Epochs that the job reports.")
    ] = None
    total_work: Annotated[
        float | None,
        shell.Option("--total-work", metavar="W", help="Its whole work in the units it reports."),
    ] = None
    workdir: Annotated[
        Path | None,
        shell.Option("--workdir", metavar="DIR", help="Where it runs; default: this folder."),
    ] = None
    package: Annotated[
        bool,
        shell.Option(
            "--package",
            help="Pack the folder and send it: the job runs in a copy, as it is now (.boaignore).",
        ),
    ] = False
    environment: Annotated[
        str | None,
        shell.Option(
            "--environment",
            metavar="ENV",
            help="Python environment: conda:NAME, venv:PATH, uv, uv:PATH.",
        ),
    ] = None
    image: Annotated[
        str | None,
        shell.Option(
            "--image",
            metavar="IMAGE",
            help="Container image to run in (its pods' on Kubernetes, else by Apptainer).",
        ),
    ] = None
    env_file: Annotated[
        Path | None,
        shell.Option("--env-file", metavar="FILE", help="Variables from a file; --env wins."),
    ] = None
    env: Annotated[
        list[str] | None,
        shell.Option("--env", metavar="K=V", help="An environment variable; may be repeated."),
    ] = None
    secret: Annotated[
        list[str] | None,
        shell.Option(
            "--secret",
            metavar="NAME[=ENV]",
            help="A secret that it gets (boa secret set), in $NAME or $ENV; may be repeated.",
        ),
    ] = None
    grace_s: Annotated[
        float | None,
        shell.Option("--grace-s", metavar="S", help="From SIGTERM to SIGKILL (30)."),
    ] = None
    retries: Annotated[
        int | None,
        shell.Option("--retries", metavar="N", help="Restarts after failures of its own (3)."),
    ] = None
    weight: Annotated[
        float | None,
        shell.Option("--weight", metavar="X", help="How much its JCT counts (1)."),
    ] = None

    def given(self) -> dict[str, Any]:
        """Those that were given, by the file's names."""
        fields = {
            "name": self.name,
            "gpus": self._limits(),
            "launcher": self.launcher,
            "epochs": self.epochs,
            "total_work": self.total_work,
            "workdir": None if self.workdir is None else _absolute(self.workdir),
            "package": PACK if self.package else None,
            "environment": self.environment,
            "image": self.image,
            "env": {**_from_env_file(self.env_file), **variables(self.env or [])},
            "secrets": [_secret(text) for text in self.secret] if self.secret else None,
            "grace_s": self.grace_s,
            "retries": self.retries,
            "weight": self.weight,
        }
        return {key: value for key, value in fields.items() if value not in (None, {})}

    def _limits(self) -> dict[str, Any]:
        named = None if self.gpus is None else [name.strip() for name in self.gpus.split(",")]
        fields = {"min": self.min_gpus, "max": self.max_gpus, "types": named}
        return {key: value for key, value in fields.items() if value is not None}


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

    The job is a command and its class. It starts when the GPUs that the plan
    has for it are there, and may be stopped (SIGTERM) and started again on
    others: it should checkpoint into $BOA_CHECKPOINT_DIR and go on from there.

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
    --priority, --after, --max-time, --max-cost, --deadline, --key and --tag also
    go with a job file. What limits and a deadline come to is said before; --terms says it and
    submits nothing.

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
        from boa.cli.live.estimate import priority_table

        print("\n".join(found["words"]))
        if found.get("priorities"):  # an older service has none
            out = console()
            out.print(priority_table(found["priorities"], out.width))


def variables(given: list[str]) -> dict[str, str]:
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError("--env", text, "K=V, such as SEED=1")
        found[key] = value
    return found


def _from_env_file(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    from boa.formats.env_file import read_env_file

    return read_env_file(path)


def _secret(text: str) -> dict[str, str]:
    name, equals, env = text.partition("=")
    return {"name": name, "env": env} if equals else {"name": name}


def _absolute(folder: Path) -> str:
    try:
        return os.path.abspath(folder)
    except FileNotFoundError:
        expected = "a folder that is there: change to one, or name one with --workdir /..."
        raise FileError("the present folder", "was deleted", expected) from None


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
        given = {"workdir": _absolute(Path()), **given}
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
