"""Docstrings name the thing first, then its unit or its law."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import boa

SOURCE = Path(boa.__file__).parent
VAGUE = ("Of ", "What ")
"""First words that leave the thing itself unnamed."""


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """String statements by line: of the module, its classes, functions and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.strip()


@cache
def modules() -> list[tuple[str, ast.Module]]:
    paths = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    return [(name, ast.parse(path.read_text("utf-8"))) for name, path in sorted(paths.items())]


def test_docstrings_name_the_thing_first() -> None:
    vague = [
        f"src/boa/{name}:{line}: {text}"
        for name, tree in modules()
        for line, text in docstrings(tree)
        if text.startswith(VAGUE)
    ]
    assert not vague, "\n".join(["say what it is, noun first, with its unit:", *vague])


def test_modules_say_what_is_inside() -> None:
    silent = [
        f"src/boa/{name}"
        for name, tree in modules()
        if tree.body and ast.get_docstring(tree) is None
    ]
    assert silent == ["src/boa/_version.py"]
