"""Reference pages made from the code: commands, requests, metrics, events.

As a program (`make tables`), writes them into docs/reference/.
"""

import ast
import inspect
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

from boa.cli import root
from boa.model import events
from boa.server.app import described
from boa.server.render.charges import this_month
from boa.server.render.metrics import SnapshotCollector
from boa.units import LEAST_HISTORY_S
from live import HALVES, Live, config, prior, spec

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MADE = "<!-- Made from the code by `make tables`: changes here are lost. -->\n"
WIDE = {"COLUMNS": "100", "NO_COLOR": "1"}
METHODS = ("get", "post", "put", "patch", "delete")

Lines = Iterator[str]


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Path, command and context of every command that does something."""

    def inside(group: Any, path: str, context: Any) -> Iterator[tuple[str, Any, Any]]:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            within = command.make_context(name, [], parent=context, resilient_parsing=True)
            if hasattr(command, "list_commands"):
                yield from inside(command, f"{path} {name}", within)
            else:
                yield f"{path} {name}", command, within

    boa = root()
    yield from inside(boa, "boa", boa.make_context("boa", [], resilient_parsing=True))


def row(*cells: str) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Lines:
    if rows:
        yield from (row(*heads), row(*("---" for _ in heads)), *(row(*cells) for cells in rows), "")


# Commands


def commands_page() -> Lines:
    yield "# Every command, as `--help` has it"
    yield "\nWhat they mean together, and examples of what they print:"
    yield "[the command line](../cli.md).\n"
    with mock.patch.dict(os.environ, WIDE):
        for path, command, context in commands():
            shown = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
            yield from (f"## {path}", "", "```text", shown, "```", "")


# Requests


def requests_page() -> Lines:
    found = described()
    yield "# Every request of the REST API"
    yield "\nThe served document, `/api/openapi.json`, as a page."
    yield "How to use it, tokens, limits and errors: [the REST API](../api.md).\n"
    for tag in found["tags"]:
        yield from (f"## {tag['name'].capitalize()}", "", tag["description"], "")
        for path, operations in found["paths"].items():
            for method in METHODS:
                if tag["name"] in operations.get(method, {}).get("tags", ()):
                    yield from _request(method, path, operations[method])
    yield from ("## Shapes", "")
    for name, schema in sorted(found["components"]["schemas"].items()):
        fields = schema.get("properties", {})
        needed = set(schema.get("required", ()))
        yield from (f"### {name}", "")
        yield from table(
            ("field", "type", "always there", "meaning"),
            [
                (f"`{key}`", kind(of), "yes" if key in needed else "", of.get("description", ""))
                for key, of in fields.items()
            ],
        )


def _request(method: str, path: str, operation: Mapping[str, Any]) -> Lines:
    yield from (f"### {method.upper()} {path}", "")
    yield from (" ".join(operation.get("description", operation["summary"]).split()), "")
    yield from table(
        ("parameter", "in", "type", "meaning"),
        [
            (f"`{of['name']}`", of["in"], kind(of["schema"]), of.get("description", ""))
            for of in operation.get("parameters", ())
        ],
    )
    for media, body in operation.get("requestBody", {}).get("content", {}).items():
        yield from (f"Body: {kind(body.get('schema', {}))}, as `{media}`.", "")
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            shapes = [kind(body.get("schema", {})) for body in answer.get("content", {}).values()]
            yield from (f"Answer: {status}, {' or '.join(filter(None, shapes)) or 'nothing'}.", "")


def kind(schema: Mapping[str, Any]) -> str:
    """A schema in a few words; shapes by name, with a link."""
    match schema:
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"anyOf": [*choices]} | {"oneOf": [*choices]}:
            return " or ".join(dict.fromkeys(kind(choice) for choice in choices))
        case {"type": "array", "items": items}:
            return f"list of {kind(items) or 'anything'}"
        case {"enum": [*values]}:
            return ", ".join(f"`{value}`" for value in values)
        case {"const": value}:
            return f"`{value}`"
        case {"type": "object", "additionalProperties": dict(inside)}:
            return f"map to {kind(inside) or 'anything'}"
        case {"type": [*types]}:
            return " or ".join(types)
        case {"type": str(name)}:
            return name
    return ""


# Metrics


def metrics_page() -> Lines:
    yield "# Every metric at `/metrics`"
    yield "\nAs a service with a plan, a cap and jobs gives them."
    yield "What they are good for, and how to scrape them:"
    yield "[metrics](../api.md#metrics), [Grafana](../grafana.md).\n"
    with tempfile.TemporaryDirectory() as folder:
        known = {"priors": {"halves": prior(HALVES, 2.0)}, "max_spend": 30.0}
        with closing(Live(config(Path(folder), **known), {"halves": HALVES})) as live:
            live.submit(spec("halves", epochs=2))
            live.advance(60.0)
            assert live.store is not None
            month = replace(this_month(live.store, live.clock.now()), over_s=LEAST_HISTORY_S)
            families = list(SnapshotCollector(live.loop.snapshot, month).collect())
    yield from table(
        ("metric", "kind", "labels", "meaning"),
        [
            (
                f"`{family.name}{'_total' if family.type == 'counter' else ''}`",
                family.type,
                ", ".join(f"`{name}`" for name in getattr(family, "_labelnames", ())),
                family.documentation,
            )
            for family in sorted(families, key=lambda family: family.name)
        ],
    )


# Events


def events_page() -> Lines:
    tree = ast.parse(inspect.getsource(events))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    yield "# Every kind of event"
    yield "\nThe fields of `data`, by `kind`."
    yield "How events are read and streamed: [events](../api.md#events).\n"
    for event, shape in events.FIELDS.items():
        yield from (f"## {event}", "")
        fields = list(_fields(shape.__name__, classes))
        yield from table(("field", "type", "always there", "meaning"), fields)
        if not fields:
            yield from ("No fields.", "")
    yield from ("## Codes", "")
    for node, below in pairwise(tree.body):
        match node, below:
            case (
                ast.AnnAssign(ast.Name(name), ast.Name("TypeAlias"), ast.Subscript(_, values)),
                ast.Expr(ast.Constant(str(said))),
            ) if name.endswith(("Code", "Cause")):
                yield from (f"### {name}", "", ast.unparse(values).strip("()").replace("'", "`"))
                yield from ("", " ".join(said.split()), "")


def _fields(name: str, classes: Mapping[str, ast.ClassDef]) -> Iterator[tuple[str, ...]]:
    """Fields of a shape, those of its bases first."""
    for base in classes[name].bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _fields(base.id, classes)
    for field, below in pairwise([*classes[name].body, ast.Pass()]):
        match field:
            case ast.AnnAssign(ast.Name(key), annotation):
                told = ast.unparse(annotation)
                inner = told.removeprefix("NotRequired[")
                always = "yes" if inner == told else ""
                told = inner if always else inner.removesuffix("]")
                yield f"`{key}`", f"`{told}`", always, _said(below)


def _said(below: ast.stmt) -> str:
    """The docstring of the field above it, if it is one."""
    match below:
        case ast.Expr(ast.Constant(str(text))):
            return text
    return ""


PAGES: Mapping[str, Callable[[], Lines]] = {
    "commands": commands_page,
    "requests": requests_page,
    "metrics": metrics_page,
    "events": events_page,
}


def made(name: str) -> str:
    return MADE + "\n".join(PAGES[name]()).rstrip() + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for page in PAGES:
        (FOLDER / f"{page}.md").write_text(made(page), "utf-8")
