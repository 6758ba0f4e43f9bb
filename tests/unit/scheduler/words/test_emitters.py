"""Every kind of event is told somewhere, with its own fields and no words."""

import ast
from collections.abc import Iterator
from pathlib import Path

import boa
from boa.model.events import FIELDS, KINDS


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every `draft.tell(…)`, and where it stands."""
    root = Path(boa.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(ast.Name("draft"), "tell")):
                    yield f"{path.relative_to(root)}:{node.lineno}", node


BY_STATE = {"started", "rescaled", "restarted", "stopped", "succeeded", "failed"}
"""Kinds that are chosen by what became of the job."""


def test_every_kind_is_emitted_somewhere_with_its_own_fields_and_no_words() -> None:
    emitted = set(BY_STATE)
    for where, call in calls():
        assert len(call.args) == 1, f"{where}: a kind, then fields by their names"
        match call.args[0]:
            case ast.Constant(str(kind)):
                emitted.add(kind)
                shape = FIELDS[kind]  # type: ignore[index]
                given = {word.arg for word in call.keywords if word.arg} - {"job", "node"}
                assert given <= shape.__annotations__.keys(), where
                if all(word.arg for word in call.keywords):
                    assert given >= shape.__required_keys__, where
            case chosen:
                assert isinstance(chosen, ast.Name), where
    assert emitted == set(KINDS) - {"other"}
