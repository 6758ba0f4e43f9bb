"""`boa replay`: act out measured models as real processes, in compressed time."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from boa.amounts import duration
from boa.cli import options, parsers, shell
from boa.cli.console import emit_json, note, working, write_file
from boa.cli.live.replay_excerpt import Calibration, Excerpt, replayed_world
from boa.cli.live.service import connect
from boa.cli.options import Json
from boa.cli.simulate.shared_options import TracePath
from boa.errors import FileError, InputError, UsageError
from boa.units import GpuName, Seconds

if TYPE_CHECKING:
    from boa.client import Client
    from boa.model.job import JobSpec
    from boa.model.profile import ClassProfile
    from boa.sim.run import World

DEFAULT_GPU = "T4"
LOOK_S = 1.0
"""How long the server's clock is watched to learn its speed."""
CONFIG = "boa.yaml"

app = shell.Group("replay", "Act out measured models as real processes, in compressed time.")
Speed: TypeAlias = Annotated[
    float | None,
    shell.Option(
        "--speed",
        metavar="S",
        parser=parsers.number("--speed", "a number of server seconds per second > 0, such as 60"),
        help="Server seconds per second of the wall.",
    ),
]


@app.add("job")
def job(
    model: Annotated[str, shell.Argument(metavar="MODEL", help="A model of the catalogue.")],
    gpus: Annotated[
        str | None,
        shell.Option(
            "--gpus",
            metavar="TYPE",
            help=f"As on this GPU type; by default the job's own, or {DEFAULT_GPU}.",
        ),
    ] = None,
    width: Annotated[
        int | None,
        options.count("--width", "K", 1, "As on so many GPUs; by default the job's own, or 1."),
    ] = None,
    speed: Speed = None,
    json: Json = False,
) -> None:
    """Act out one training of a catalogue model, here and now.

    Inside a job (launcher: single) it goes by the job's GPUs, checkpoints and
    reports; anywhere else it just takes the time that the model would take.

    [bold]Examples[/bold]
    [dim]$[/dim] boa replay job resnet18 --gpus T4 --width 4 --speed 200
    [dim]$[/dim] boa submit --class bert --launcher single -- boa replay job bert
    """
    gpu = gpus or os.environ.get("BOA_GPU_TYPE") or DEFAULT_GPU
    profile = known_profile(model, gpu)
    chosen = {"BOA_GPU_TYPE": gpu, "BOA_WIDTH": width, "BOA_SPEED": speed}
    said = {name: str(value) for name, value in chosen.items() if value is not None}
    with redirect_stdout(sys.stderr) if json else nullcontext():
        code = _played(profile, {**os.environ, **said})
    if json:
        emit_json({"class": profile.name, "gpu_type": gpu, "exit_code": code})
    raise shell.Exit(code)


def _played(profile: "ClassProfile", environment: Mapping[str, str]) -> int:
    """The exit code of a training that was acted out."""
    from boa.formats.profile import profile_document
    from boa.train import replay

    try:
        return replay.play(profile_document(profile), environment)
    except replay.Unusable as problem:
        raise UsageError(str(problem)) from None


def known_profile(model: str, gpu: GpuName) -> "ClassProfile":
    """The profile of a class or an application, on one GPU type of the catalogue."""
    from boa.catalogue.calibration import class_name
    from boa.catalogue.offers import OFFERS, gpu_types
    from boa.catalogue.priors import catalogue_classes, catalogue_profile

    name = class_name(model)
    if name not in catalogue_classes():
        raise InputError("MODEL", model, f"one of {', '.join(catalogue_classes())}")
    found = catalogue_profile(name, gpu_types([gpu]))
    if found is None:
        measured = [other for other in OFFERS if catalogue_profile(name, gpu_types([other]))]
        raise InputError("--gpus", gpu, f"one of {', '.join(measured)}")
    return found


@app.add("trace")
def replay_trace(
    trace: TracePath,
    *,
    excerpt: Excerpt,
    speed: Speed = None,
    calibration: Calibration,
    profiles_out: Annotated[
        Path | None,
        shell.Option(
            "--profiles-out",
            metavar="DIR",
            help="Where the profiles go that the jobs read; by default the data folder.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Submit a trace's jobs to the service as they arrive, each a replay job.

    Arrival times are the server's: a service with a speed of 60 gets an hour
    of the trace in a minute. Without --speed its clock is watched for a
    second. The service has to offer the GPU types; boa replay profiles
    writes a boa.yaml for it.

    [bold]Examples[/bold]
    [dim]$[/dim] boa replay trace sia.csv --limit 50
    [dim]$[/dim] boa replay trace pollux.csv --models cifar10,bert,ncf --speed 200
    """
    from boa.formats.service import default_data_dir

    world = replayed_world(trace, excerpt, calibration)
    folder = profiles_out or default_data_dir() / "replay" / trace.stem
    with connect() as client:
        client.health()  # before any work: no server is one error, and at once
        jobs = _prepared(world, folder)
        ids = submit_all(client, jobs, speed or watched_speed(client))
    if json:
        emit_json({"jobs": ids, "profiles": str(folder)})
    else:
        span = duration(world.trace.span_s)
        note(f"{len(ids):,} jobs submitted over {span} of the server's time: boa ps shows them")


def _prepared(world: "World", folder: Path) -> "list[tuple[Seconds, JobSpec]]":
    """Jobs by their arrival, with the profiles that they read in a folder."""
    from boa.sim.replay_jobs import replay_jobs

    try:
        return list(replay_jobs(world, folder))
    except OSError as problem:
        raise _unwritable(folder, "--profiles-out", problem) from None


def watched_speed(client: "Client") -> float:
    """Server seconds per second of the wall."""
    began, at = client.health()["now"], time.monotonic()
    time.sleep(LOOK_S)
    now, then = client.health()["now"], time.monotonic()
    return (now - began) / (then - at)


def submit_all(
    client: "Client",
    jobs: "Sequence[tuple[Seconds, JobSpec]]",
    speed: float,
    sleep: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Each job when it is due, counted from now: being late once delays none of the others."""
    ids: list[str] = []
    began = time.monotonic()
    with working("submitting", delay=0.0) as line:
        for arrival, spec in jobs:
            line(len(ids), len(jobs))
            wait = began + arrival / speed - time.monotonic()
            if wait > 0:
                sleep(wait)
            ids.append(client.submit(spec)["id"])
    return ids


@app.add("profiles")
def profiles(
    trace: TracePath,
    output: Annotated[
        Path,
        shell.Option("-o", "--output", metavar="DIR", help="Where the files go."),
    ],
    excerpt: Excerpt,
    calibration: Calibration,
    perfect: Annotated[
        bool,
        shell.Option(
            "--perfect",
            help="In boa.yaml, have the service know every class for good, as in boa simulate.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Write the profile of every class in a trace, and a boa.yaml that names them.

    The same speeds, GPU types and prices as boa simulate has with the same
    options.

    [bold]Examples[/bold]
    [dim]$[/dim] boa replay profiles sia.csv --gpus T4 -o live
    [dim]$[/dim] boa serve --config live/boa.yaml --budget 40
    """
    from boa.sim.replay_jobs import service_document

    world = replayed_world(trace, excerpt, calibration)
    files = _written(world, output)
    names = {application: Path(file.name) for application, file in files.items()}
    document = service_document(world, names, perfect=perfect)
    write_file(output / CONFIG, _as_yaml(document), "--output")
    if json:
        emit_json({"config": str(output / CONFIG), "profiles": [str(f) for f in files.values()]})
    else:
        note(f"{len(files)} profiles and {CONFIG} written to {output}")


def _written(world: "World", folder: Path) -> Mapping[str, Path]:
    """Files of profiles by application."""
    from boa.sim.replay_jobs import profiles_of, write_profiles

    found = profiles_of(world)
    try:
        return write_profiles(found, folder)
    except OSError as problem:
        raise _unwritable(folder, "--output", problem) from None


def _as_yaml(document: Any) -> str:
    import yaml

    return yaml.safe_dump(document, sort_keys=False, default_flow_style=None, allow_unicode=True)


def _unwritable(folder: Path, option: str, problem: OSError) -> FileError:
    reason = problem.strerror or str(problem)
    return FileError(f"{option} {folder}", reason, "a folder that can be written to")
