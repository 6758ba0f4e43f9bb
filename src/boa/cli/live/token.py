"""`boa token`: who may ask the service for what."""

import time
from typing import Annotated

from boa.cli import options, parsers, shell
from boa.cli.console import console, emit_json, note
from boa.cli.live.serve import signed_in
from boa.cli.live.service import ago, connect
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import listing
from boa.errors import UsageError
from boa.model.access import ROLES

app = shell.Group("token", "Give out tokens with roles, list them, take them back.")
Name = Annotated[str, shell.Argument(metavar="NAME", help="Whose it is.")]


@app.add("add")
def add(
    name: Name,
    role: Annotated[
        str,
        options.choice("--role", ROLES, "viewer: reads; member: submits, stops its own; admin."),
    ],
    team: Annotated[
        str | None,
        shell.Option(
            "--team",
            metavar="NAME",
            help="Members of a team read each other's logs; a part of the budget may pay for them.",
        ),
    ] = None,
    expires: Annotated[
        float | None,
        shell.Option(
            "--expires",
            metavar="SPAN",
            parser=parsers.span("--expires"),
            help="How long it is good, such as 12h or 30d; without it, until it is revoked.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make a token for somebody, and print it: this once, as only its hash is kept.

    It is good at once, without a restart. Who has it sets BOA_TOKEN to it, or
    logs in on the page with it. Jobs that are submitted with it have its name
    as their owner.

    [bold]Examples[/bold]
    [dim]$[/dim] boa token add alice --role member --team vision --expires 30d
    [dim]$[/dim] boa token add wallboard --role viewer
    """
    with connect() as client:
        made = client.add_token(name, role, team=team or "", expires_in_s=expires)
    if json:
        emit_json(made)
    else:
        print(made["token"])
        note(f"token of {name}, role {role}: it is not shown again")


@app.add("list")
def list_tokens(json: Json = False) -> None:
    """List the tokens that were given out, with their roles; never the tokens themselves.

    [bold]Examples[/bold]
    [dim]$[/dim] boa token list
    [dim]$[/dim] boa token list --json | jq -r '.tokens[] | select(.good) | .name'
    """
    with connect() as client:
        found = client.tokens()
    if json:
        emit_json({"tokens": found})
        return
    out, now = console(), time.time()
    if not found:
        out.print("no tokens were given out (boa token add); the service's own is an admin's")
        return
    rows = [
        (
            escape(token["name"]),
            token["role"],
            escape(token["team"]) or "–",
            ago(now, token["created_at"]),
            escape(token["created_by"]) or "–",
            ago(now, token["revoked_at"]) if token["revoked_at"] else "–",
            "never" if token["expires_at"] is None else ago(now, token["expires_at"]),
        )
        for token in found
    ]
    columns = ("name", "role", "team", "made", "by", "revoked", "expires")
    out.print(listing(columns, rows, out.width, cut=("name", "team"), drop=("by", "made")))


@app.add("revoke")
def revoke(name: Name, json: Json = False) -> None:
    """Take a token back: from now on it opens nothing.

    Jobs that were submitted with it go on.

    [bold]Example[/bold]
    [dim]$[/dim] boa token revoke alice
    """
    with connect() as client:
        revoked = client.revoke_token(name)
    if json:
        emit_json({"token": revoked})
    else:
        print(f"{name}: revoked")


@app.add("show")
def show(json: Json = False) -> None:
    """Show the address that opens the dashboard signed in, and who you are there.

    With the token that commands use here: $BOA_TOKEN, or that of your own
    service. Whoever sees the address may do what you may.

    [bold]Example[/bold]
    [dim]$[/dim] boa token show
    """
    with connect() as client:
        who, token, url = client.whoami(), client.token, client.url
    if token is None:
        raise UsageError(f"The service at {url} wants no token: its dashboard is at {url}")
    if json:
        emit_json({**who, "url": url, "dashboard": signed_in(url, token)})
    else:
        print(signed_in(url, token))
        note(f"signed in as {who['name']}, role {who['role']}")
