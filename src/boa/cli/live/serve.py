"""`boa serve`: the service itself."""

import os
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from boa.cli import options, parsers, shell
from boa.cli.console import emit_json, note
from boa.cli.options import Json
from boa.errors import InputError, UsageError
from boa.units import UsdPerHour

if TYPE_CHECKING:
    from boa.model.service import ServiceConfig
    from boa.model.workload import Billing

CONFIG = shell.Option("--config", metavar="FILE", help="boa.yaml (`boa schema config`).")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOverrides:
    """Settings that win over the file's; they go by its names."""

    budget_per_hour: Annotated[
        UsdPerHour | None,
        options.dollars("--budget", "Average spend per hour that is steered to."),
    ] = None
    max_spend_per_hour: Annotated[
        UsdPerHour | None,
        options.dollars("--max-spend", "Never spend more per hour than this at any moment."),
    ] = None
    billing: Annotated[
        "Billing | None",
        options.choice(
            "--billing",
            options.BILLINGS,
            "What the budget counts: whole nodes from request to gone (node, the default), or the "
            "GPUs that jobs hold.",
        ),
    ] = None
    engine: Annotated[
        str | None,
        shell.Option(
            "--engine", metavar="local|ray", help="What runs the jobs: this machine, or Ray."
        ),
    ] = None
    cloud: Annotated[
        str | None,
        shell.Option(
            "--cloud",
            metavar="local|ray|aws",
            help="What rents the nodes; with engine ray: Ray's own autoscaler, or AWS.",
        ),
    ] = None
    db: Annotated[
        str | None,
        shell.Option(
            "--db",
            metavar="URL",
            help="Where everything is kept: sqlite:///FILE (default: DIR/boa.db) or postgresql://…",
        ),
    ] = None
    data_dir: Annotated[
        Path | None,
        shell.Option(
            "--data",
            metavar="DIR",
            help="Logs, checkpoints and the database; default: $BOA_HOME, else ~/.local/state/boa.",
        ),
    ] = None
    host: Annotated[
        str | None,
        shell.Option("--host", metavar="HOST", help="Where to listen (127.0.0.1)."),
    ] = None
    port: Annotated[
        int | None,
        shell.Option("--port", metavar="N", help="The port (8420); 0 takes a free one."),
    ] = None
    speed: Annotated[
        float | None,
        shell.Option(
            "--speed",
            metavar="X",
            parser=parsers.number("--speed", "a finite number > 0, such as 60"),
            help="Compressed time, for demos and tests: so many seconds pass in one.",
        ),
    ] = None


def serve(
    *,
    config: Annotated[Path | None, CONFIG] = None,
    overrides: ServeOverrides,
    dry_run: Annotated[
        bool,
        shell.Option(
            "--dry-run",
            help="With --cloud aws: print what would be done there, ask whether it may be, "
            "change nothing and end.",
        ),
    ] = False,
    accept_store: Annotated[
        bool,
        shell.Option(
            "--accept-store",
            help="Go on with a database that has lost something (`boa store check`): what belongs "
            "to jobs that it does not know is moved to quarantine.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Run the service: take jobs, rent nodes, keep the budget.

    Flags win over the file given with --config. Jobs outlive the service:
    killed and started again, it finds them and goes on. With $BOA_TOKEN set,
    every request must carry that token; without one, the service listens on
    this machine only.

    With --json one document on stdout says where it listens, once it does.

    [bold]Examples[/bold]
    [dim]$[/dim] boa serve --budget 14
    [dim]$[/dim] boa serve --config boa.yaml --max-spend 30
    [dim]$[/dim] BOA_TOKEN=$(openssl rand -hex 16) boa serve --budget 14 --host 0.0.0.0
    """
    from boa.catalogue.priors import catalogue_profile
    from boa.formats.service import load_config
    from boa.server import service

    settings = load_config(config, asdict(overrides), catalogue_profile)
    if dry_run:
        _show_dry_run(settings, json)
        return
    ready = partial(_tell_ready, settings, json)
    service.run(settings, checked_token(settings.host), ready, accept_store=accept_store)


def _tell_ready(settings: "ServiceConfig", json: bool, url: str, in_force: UsdPerHour) -> None:
    note(
        f"boa: serving on {url}, budget ${in_force:g}/h, engine {settings.engine}, "
        f"cloud {settings.cloud}"
    )
    if json:
        emit_json({"url": url, "pid": os.getpid(), "budget_per_hour": in_force})
        sys.stdout.flush()


def _show_dry_run(settings: "ServiceConfig", json: bool) -> None:
    from boa.server.dry_run import dry_run

    steps = dry_run(settings)
    if json:
        emit_json({"steps": [{"what": step.what, "text": step.text} for step in steps]})
        return
    for step in steps:
        print(f"{step.what:<9} {step.text}")
    note("boa: nothing was changed")


def checked_token(host: str) -> str | None:
    """$BOA_TOKEN; without it, nothing but this machine may be listened to."""
    from boa.api.hosts import is_loopback

    token = os.environ.get("BOA_TOKEN") or None
    if token is None and not is_loopback(host):
        raise UsageError(
            f"--host {host} can be reached by others, who could run anything here: set BOA_TOKEN "
            "to a token that they need, or listen on 127.0.0.1."
        )
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise InputError("BOA_TOKEN", "…", "printable ASCII without blanks", "has other characters")
    return token
