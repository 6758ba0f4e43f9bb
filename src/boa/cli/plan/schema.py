"""`boa schema`: the file formats, for editors and validators."""

from typing import Annotated

from boa.cli import parsers, shell
from boa.cli.console import emit_json
from boa.cli.options import Json
from boa.formats.kinds import KINDS, format_of


def schema(
    kind: Annotated[
        str,
        shell.Argument(
            metavar="|".join(KINDS),
            parser=parsers.one_of("schema", KINDS),
            help="; ".join(f"{kind}: {what}" for kind, what in KINDS.items()) + ".",
        ),
    ],
    json: Json = False,
) -> None:
    """Print the JSON Schema (draft 2020-12) of one of our formats.

    Editors complete and check files with it; its descriptions say what every
    field means. The output is JSON with or without --json.

    [bold]Examples[/bold]
    [dim]$[/dim] boa schema workload > workload.schema.json
    [dim]$[/dim] boa schema job > job.schema.json
    """
    emit_json(format_of(kind).schema())
