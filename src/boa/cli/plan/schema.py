"""`boa schema`: the file formats, for editors and validators."""

from typing import Annotated

from boa.cli import options, shell
from boa.cli.console import emit_json
from boa.cli.options import Json

KINDS = ("workload", "plan", "job", "config", "profile")


def schema(
    kind: Annotated[
        str,
        shell.Argument(
            metavar="|".join(KINDS),
            parser=options.one_of("schema", KINDS),
            help="Which file: a workload, a plan, a job spec, boa.yaml or a class profile.",
            show_default=False,
        ),
    ],
    json: Json = False,
) -> None:
    """Print the JSON Schema (draft 2020-12) of one of our files.

    Editors complete and check files with it; its descriptions say what every
    field means. The output is JSON with or without --json.

    [bold]Examples[/bold]
    [dim]$[/dim] boa schema workload > workload.schema.json
    [dim]$[/dim] boa schema job > job.schema.json
    """
    from boa.formats.schema import plan_schema, workload_schema
    from boa.formats.schema_jobs import job_schema, profile_schema
    from boa.formats.schema_service import config_schema

    schemas = (workload_schema, plan_schema, job_schema, config_schema, profile_schema)
    emit_json(dict(zip(KINDS, schemas, strict=True))[kind]())
