"""`boa class`: what was learned of a class, corrected."""

from typing import Annotated

from boa.cli import options, shell
from boa.cli.console import emit_json, note
from boa.cli.live.service import connect
from boa.cli.options import Json

app = shell.Group("class", "Have widths tried again at which jobs of a class failed.")


@app.add("retry")
def retry(
    name: Annotated[str, shell.Argument(metavar="CLASS", help="The class.")],
    gpu: Annotated[
        str | None, shell.Option("--gpu", metavar="TYPE", help="On this GPU type only.")
    ] = None,
    width: Annotated[int | None, options.count("--width", "K", 1, "At this width only.")] = None,
    json: Json = False,
) -> None:
    """Have widths tried again at which jobs of a class failed.

    A width at which jobs fail before they get anywhere, while they go well at
    another, is not used any more (boa show CLASS lists such widths). It is tried
    again by itself after an hour and after six, and when the script has changed.
    This is for what the service does not see: a new package, image or driver.

    [bold]Examples[/bold]
    [dim]$[/dim] boa class retry resnet18
    [dim]$[/dim] boa class retry resnet18 --gpu A100 --width 2
    """
    with connect() as client:
        found = client.retry_class(name, gpu_type=gpu, width=width)
    if json:
        emit_json(found)
        return
    for one in found["retried"]:
        where = f"{one['width']}×{one['gpu_type']}{' across nodes' if one['across_nodes'] else ''}"
        print(f"{where} may be used again; it failed {one['times']}×: {one['reason']}")
    if not found["retried"]:
        note(f"nothing of {name} is known to fail there: nothing was changed")
