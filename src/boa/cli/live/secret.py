"""`boa secret`: what jobs need to know and nobody else: set, list, remove."""

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

from boa.cli import shell
from boa.cli.console import console, emit_json, note
from boa.cli.live.service import ago, connect
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import listing
from boa.errors import FileError, InputError

app = shell.Group("secret", "Set, list and remove secrets: what jobs get and nobody is shown.")
MOST_BYTES = 1024**2
Name: TypeAlias = Annotated[str, shell.Argument(metavar="NAME", help="Such as HF_TOKEN.")]


@app.add("set")
def set_secret(
    name: Name,
    from_file: Annotated[
        Path | None,
        shell.Option("--from-file", metavar="FILE", help="Take the value from a file, as it is."),
    ] = None,
    json: Json = False,
) -> None:
    """Set a secret: new, or in place of another value.

    The value is asked for on a terminal, and read from standard input
    otherwise, less the end of its last line. It is no argument: those are seen
    by every user of the machine. Runs that begin from now on get it.

    [bold]Examples[/bold]
    [dim]$[/dim] boa secret set HF_TOKEN
    [dim]$[/dim] pass show wandb | boa secret set WANDB_API_KEY
    [dim]$[/dim] boa secret set GCP_KEY --from-file key.json
    """
    value = _typed(name) if from_file is None else _text(_content(from_file), str(from_file))
    with connect() as client:
        secret = client.set_secret(name, value)
    if json:
        emit_json({"secret": secret})
    else:
        note(f"secret {name} is set; jobs get it by --secret {name}, or secrets: [{name}]")


@app.add("list")
def list_secrets(json: Json = False) -> None:
    """List the secrets that are set, by name. Nothing shows their values.

    [bold]Examples[/bold]
    [dim]$[/dim] boa secret list
    """
    with connect() as client:
        found = client.secret_list()
    if json:
        emit_json({"secrets": found["secrets"]})
        return
    out = console()
    if not found["secrets"]:
        out.print("no secrets are set: boa secret set NAME")
        return
    rows = [
        (
            escape(one["name"]),
            ago(found["now"], one["set_at"]),
            escape(one["set_by"]) or "–",
            f"{one['jobs']}",
        )
        for one in found["secrets"]
    ]
    columns = ("name", "set", "by", "active jobs")
    out.print(listing(columns, rows, out.width, right=("active jobs",), cut=("name", "by")))


@app.add("rm")
def remove(
    name: Name,
    force: Annotated[
        bool,
        shell.Option(
            "--force", help="Though active jobs use it: their next start waits until it is set."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Remove a secret. Runs that have it go on with it.

    [bold]Examples[/bold]
    [dim]$[/dim] boa secret rm HF_TOKEN
    """
    with connect() as client:
        secret = client.remove_secret(name, force=force)
    if json:
        emit_json({"secret": secret})
    else:
        note(f"secret {name} is removed")


def _typed(name: str) -> str:
    if sys.stdin.isatty():
        from getpass import getpass

        try:
            return getpass(f"value of {name}: ")
        except EOFError:  # Ctrl-D
            raise InputError("value", None, "a value to be typed in", "none was given") from None
    data = sys.stdin.buffer.read(MOST_BYTES)
    text = _text(data, "standard input")
    return text.removesuffix("\n").removesuffix("\r")


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError as trouble:
        problem = (trouble.strerror or str(trouble)).lower()
        raise FileError(str(path), problem, "a file that can be read") from None


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("value", None, "UTF-8 text", f"{where} has other bytes") from None
