"""`boa artifacts`: files that jobs leave, listed and fetched."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from boa.cli import shell
from boa.cli.console import console, emit_json, note
from boa.cli.live.service import JobId, ago, connect
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import listing
from boa.errors import InputError

if TYPE_CHECKING:
    from boa.api.files import ArtifactList

app = shell.Group("artifacts", "List and fetch files that jobs leave in $BOA_ARTIFACTS.")
KILO = 1024.0


@app.add("ls")
def ls(job: JobId, json: Json = False) -> None:
    """List the files that a job has left in $BOA_ARTIFACTS.

    They are kept for a while after its end (artifacts in boa.yaml), and are
    for its owner, the owner's team, and admins.

    [bold]Examples[/bold]
    [dim]$[/dim] boa artifacts ls 17
    """
    with connect() as client:
        found = client.artifacts(job)
    if json:
        emit_json(found)
        return
    out = console()
    if not found["files"]:
        out.print(f"job {job} has left no files in $BOA_ARTIFACTS")
        return
    now = time.time()
    rows = [
        (escape(one["path"]), size(one["size"]), ago(now, one["modified_at"]))
        for one in found["files"]
    ]
    out.print(listing(("file", "size", "written"), rows, out.width, right=("size",), cut=("file",)))
    out.print(_below(found))


@app.add("get")
def get(
    job: JobId,
    paths: Annotated[
        list[str] | None,
        shell.Argument(metavar="[FILE...]", help="Which; default: all."),
    ] = None,
    to: Annotated[
        Path | None,
        shell.Option("--to", "-o", metavar="DIR", help="Where to; default: job-JOB here."),
    ] = None,
    json: Json = False,
) -> None:
    """Fetch files that a job has left in $BOA_ARTIFACTS.

    Files keep their paths below DIR; those that are there are replaced.

    [bold]Examples[/bold]
    [dim]$[/dim] boa artifacts get 17
    [dim]$[/dim] boa artifacts get 17 model.pt metrics/last.json -o results
    """
    folder = to or Path(f"job-{job}")
    with connect() as client:
        found = client.artifacts(job)
        known = [one["path"] for one in found["files"]]
        for path in paths or ():
            if path not in known and not found["more"]:
                raise InputError("FILE", path, f"a file that boa artifacts ls {job} lists")
        wanted = list(paths or known)
        fetched = [str(client.fetch_artifact(job, path, folder)) for path in wanted]
    if json:
        emit_json({"job": job, "files": fetched})
    elif fetched:
        print("\n".join(fetched))
    else:
        note(f"job {job} has left no files in $BOA_ARTIFACTS")


def size(count: float) -> str:
    """In a unit that leaves three digits: 812 B, 4.1 KB, 35 MB."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < KILO:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= KILO
    return f"{count:.1f} TB"


def _below(found: "ArtifactList") -> str:
    parts = [f"{len(found['files']) + found['more']} files, {size(found['size'])}"]
    if found["more"]:
        parts.append(f"the first {len(found['files']):,} of them are listed")
    if found["odd"]:
        parts.append(f"{found['odd']} more are no plain files, and not given out")
    if found["kept_until"] is not None:
        parts.append(f"kept until {ago(found['now'], found['kept_until'])}")
    return "[dim]" + "; ".join(parts).replace("kept until in", "kept for another") + "[/dim]"
