"""`.boaignore`: which files of a folder stay behind when it is packed.

A pattern a line, as in .gitignore: `*` and `?` within a name, `**` across folders, a leading or
inner `/` binds it to the folder that is packed, a trailing one means folders alone, `!` takes
something back in. Lines that begin with # say nothing.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FILE = ".boaignore"
ALWAYS = (
    *(".git/", ".hg/", ".svn/", "__pycache__/", "*.pyc", ".venv/", "venv/", "node_modules/"),
    *(".mypy_cache/", ".pytest_cache/", ".ruff_cache/", ".ipynb_checkpoints/", ".DS_Store"),
    *(".env", "*.pem", "*.key", "id_rsa*", "id_ed25519*"),
)
"""Patterns before those of the file, which can take any of them back: what a tool can make again,
and what is nobody else's to know."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    keeps: bool
    folders_only: bool


class Ignored:
    """Whether a path stays behind; the last pattern that fits has the say."""

    def __init__(self, lines: Iterable[str], always: Sequence[str] = ALWAYS) -> None:
        self._rules = [rule for line in (*always, *lines) if (rule := _rule(line)) is not None]

    def __call__(self, path: str, *, is_folder: bool) -> bool:
        ignored = False
        for rule in self._rules:
            if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(path):
                ignored = not rule.keeps
        return ignored


def _rule(line: str) -> _Rule | None:
    text = line.rstrip("\r\n").strip()
    if not text or text.startswith("#"):
        return None
    keeps, text = text.startswith("!"), text.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    bound = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    return _Rule(re.compile(("" if bound else "(?:.*/)?") + _expression(text)), keeps, folders_only)


def _expression(text: str) -> str:
    found, at = "", 0
    while at < len(text):
        rest = text[at:]
        if rest.startswith("**/"):
            found, at = found + "(?:.*/)?", at + 3
        elif rest.startswith("**"):
            found, at = found + ".*", at + 2
        elif rest[0] == "*":
            found, at = found + "[^/]*", at + 1
        elif rest[0] == "?":
            found, at = found + "[^/]", at + 1
        elif rest[0] == "[" and "]" in rest[2:]:
            end = rest.index("]", 2)
            inner = rest[1:end].replace("\\", "\\\\").replace("[", "\\[")
            inner = "^" + inner[1:] if inner[0] in "!^" else inner
            found, at = found + f"[{inner}]", at + end + 1
        else:
            found, at = found + re.escape(rest[0]), at + 1
    return found
