"""`boa schema`: the file formats, for editors and validators."""

from typing import Annotated

import typer

from boa.cli import options
from boa.cli.console import emit_json
from boa.cli.options import Json

KINDS = ("workload", "plan")


def schema(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="|".join(KINDS),
            parser=options.one_of("schema", KINDS),
            help="Which file.",
            show_default=False,
        ),
    ],
    json: Json = False,
) -> None:
    """Print the JSON Schema (draft 2020-12) of a workload file or a plan file.

    Editors complete and check files with it; its descriptions say what every
    field means. The output is JSON with or without --json.

    [bold]Example[/bold]
    [dim]$[/dim] boa schema workload > workload.schema.json
    """
    from boa.model.schema import plan_schema, workload_schema

    emit_json(workload_schema() if kind == "workload" else plan_schema())
