"""`boa serve`: the service itself."""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from boa.amounts import rate
from boa.cli import options, parsers, shell
from boa.cli.console import emit_json, note
from boa.cli.options import Json
from boa.errors import FileError, UsageError
from boa.units import UsdPerHour

if TYPE_CHECKING:
    from boa.clouds.aws.dry_run import Step as AwsStep
    from boa.clouds.kubernetes.dry_run import Step as KubernetesStep
    from boa.model.service import ServiceConfig
    from boa.model.workload import Billing
    from boa.server.service import Ready, TokenChoice

MOST_TOKEN = 4096
"""Bytes of a file with a token."""
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
            "--engine",
            metavar="local|ray|kubernetes",
            help="What runs the jobs: this machine, Ray or Kubernetes.",
        ),
    ] = None
    cloud: Annotated[
        str | None,
        shell.Option(
            "--cloud",
            metavar="local|ray|aws|kubernetes",
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
    token_file: Annotated[
        Path | None,
        shell.Option(
            "--token-file",
            metavar="FILE",
            help="Where the token is that requests need, for you alone to read.",
        ),
    ] = None
    tls_cert: Annotated[
        Path | None,
        shell.Option("--tls-cert", metavar="FILE", help="Serve https with this certificate (PEM)."),
    ] = None
    tls_key: Annotated[
        Path | None,
        shell.Option("--tls-key", metavar="FILE", help="Its private key, if that is apart (PEM)."),
    ] = None
    trust_user_header: Annotated[
        str | None,
        shell.Option(
            "--trust-user-header",
            metavar="NAME",
            help="Where a reverse proxy says who asks (docs/proxy.md).",
        ),
    ] = None
    trust_proxy: Annotated[
        list[str] | None,
        shell.Option(
            "--trust-proxy", metavar="ADDR", help="A proxy that is believed; may be repeated."
        ),
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
            help="With --cloud aws or kubernetes: print what would be done there, ask whether it "
            "may be, change nothing and end.",
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
    no_token: Annotated[
        bool,
        shell.Option(
            "--no-token",
            help="Want no token: every user of this machine may then run commands as you.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Run the service: take jobs, rent nodes, keep the budget.

    Flags win over the file given with --config. Jobs outlive the service:
    killed and started again, it finds them and goes on.

    Every request needs a token. The service makes one at its first start and
    keeps it in DIR/token; commands of the same user find it by themselves.
    With --token-file or $BOA_TOKEN it is that one, and other machines may be
    listened to as well.

    With --json one document on stdout says where it listens, once it does.

    [bold]Examples[/bold]
    [dim]$[/dim] boa serve --budget 14
    [dim]$[/dim] boa serve --config boa.yaml --max-spend 30
    [dim]$[/dim] BOA_TOKEN=$(openssl rand -hex 32) boa serve --budget 14 --host 0.0.0.0
    [dim]$[/dim] boa serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    from boa.catalogue.priors import catalogue_profile
    from boa.formats.service import load_config
    from boa.server import service

    settings = load_config(config, asdict(overrides), catalogue_profile)
    if dry_run:
        _show_dry_run(settings, json)
        return
    ready, token = partial(_tell_ready, settings, json), token_choice(settings, no_token)
    _close_to_jobs()
    service.run(settings, token, ready, accept_store=accept_store)


def _close_to_jobs() -> None:
    """Hide from jobs what this process was started with, its token above all."""
    from boa.engines.passing import passed
    from boa.own_process import close_to_others

    os.environ.pop("BOA_TOKEN", None)
    shown = passed(os.environ)
    close_to_others(lambda name: name in shown)


def _tell_ready(settings: "ServiceConfig", json: bool, ready: "Ready") -> None:
    note(
        f"boa: serving on {ready.url}, budget {rate(ready.budget)}, engine {settings.engine}, "
        f"cloud {settings.cloud}"
    )
    if ready.token is not None and sys.stderr.isatty() and not json:
        note(f"boa: its dashboard, signed in: {signed_in(ready.url, ready.token)}")
    from boa.formats.machine import slot_words

    if slots := slot_words(settings.gpu_types, settings.max_nodes):
        note(f"boa: {slots}")
    for line in ready.notices:
        if sys.stderr.isatty():  # elsewhere it is in the log, which is there, too
            note(f"boa: {line}")
    if not ready.told:
        note(
            "boa: commands do not find the token by themselves, as no folder for that can be "
            f"written: export BOA_TOKEN=$(cat {ready.token_file or settings.token_file})"
        )
    if json:
        said: dict[str, object] = {
            "url": ready.url,
            "pid": os.getpid(),
            "budget_per_hour": ready.budget,
        }
        if ready.token_file is not None:
            said["token_file"] = str(ready.token_file)
        if ready.notices:
            said["notices"] = list(ready.notices)
        emit_json(said)
        sys.stdout.flush()


def signed_in(url: str, token: str) -> str:
    """Where the page opens without asking for the token. What follows # never leaves a browser."""
    return f"{url}/#token={token}"


def _show_dry_run(settings: "ServiceConfig", json: bool) -> None:
    from boa.server.dry_run import dry_run

    steps = dry_run(settings)
    if json:
        emit_json({"steps": [{"what": step.what, "text": step.text} for step in steps]})
    else:
        for step in steps:
            print(f"{step.what:<9} {step.text}")
        note("boa: nothing was changed")
    if settings.cloud == "kubernetes":
        _check_possible([step for step in steps if step.what in ("denied", "missing", "taken")])


def _check_possible(wrong: "Sequence[AwsStep | KubernetesStep]") -> None:
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise UsageError(f"a service could not run there: {wrong[0].what}: {wrong[0].text}{more}.")


def token_choice(settings: "ServiceConfig", no_token: bool) -> "TokenChoice":
    """$BOA_TOKEN, a file's, the service's own, or none: then only this machine is listened to."""
    from boa.api.hosts import is_loopback
    from boa.api.tokens import checked_token
    from boa.server.service import TokenChoice

    # What jobs and crash reports could tell; /proc/PID/environ keeps it all the same.
    given = os.environ.pop("BOA_TOKEN", "") or None
    if no_token and (given or settings.token_file):
        raise UsageError("--no-token does not go with a token: unset BOA_TOKEN, or leave it out.")
    if no_token and settings.trust_user_header:
        raise UsageError("--no-token does not go with --trust-user-header: all may do everything.")
    chosen = given or settings.token_file or (settings.tls_cert and not no_token)
    if not chosen and not is_loopback(settings.host):
        raise UsageError(
            f"--host {settings.host} can be reached by others, who could run anything here: set "
            "BOA_TOKEN or --token-file to a token that they need, or listen on 127.0.0.1."
        )
    if given:
        return TokenChoice(token=checked_token(given, "BOA_TOKEN"))
    if settings.token_file:
        token = checked_token(_token_in(settings.token_file), settings.token_file)
        return TokenChoice(token=token, told=True)
    return TokenChoice() if no_token else TokenChoice(own=True, told=True)


def _token_in(file: str) -> str:
    from boa.plain_file import read_plain
    from boa.private_files import is_open

    expected = "a file with a token, for you alone to read (chmod 600)"
    try:
        if is_open(Path(file)):
            raise FileError(file, "is open to other users", expected)
        return read_plain(file, most=MOST_TOKEN, follow=True).decode("utf-8").strip()
    except OSError as trouble:
        raise FileError(file, (trouble.strerror or str(trouble)).lower(), expected) from None
    except UnicodeDecodeError:
        raise FileError(file, "is not text", expected) from None
