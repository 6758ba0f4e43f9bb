"""Lines that the elastic examples have otherwise than the plain scripts they came from, counted.

As a program (`make tables`), writes the counts into the table of docs/migration.md.
"""

import difflib
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES, PAGE = ROOT / "examples", ROOT / "docs" / "migration.md"
ROW = re.compile(r"^(\| \[`train_(\w+)\.py`\].*\| )\+\d+ −\d+ \|$", re.MULTILINE)
"""A row of the table: the example's name, what it shows, and its count."""


def plain_of(name: str) -> Path:
    """The script before BOA; an untouched one is its own."""
    plain = EXAMPLES / "plain" / f"plain_{name}.py"
    return plain if plain.exists() else EXAMPLES / f"train_{name}.py"


def code_of(path: Path) -> list[str]:
    """Lines of code: without the docstring at the head, comments and empty lines."""
    text = re.sub(r'\A""".*?"""\n', "", path.read_text("utf-8"), flags=re.DOTALL)
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return [line.rstrip() for line in lines if line.strip()]


def changed(name: str) -> tuple[int, int]:
    """(lines that are new or changed, lines of the plain script that are gone or changed)."""
    before, after = code_of(plain_of(name)), code_of(EXAMPLES / f"train_{name}.py")
    pieces = difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes()
    told = [piece for piece in pieces if piece[0] != "equal"]
    return sum(d - c for *_, c, d in told), sum(b - a for _, a, b, *_ in told)


def counted(page: str) -> str:
    """The page, with its table as it is counted."""

    def row(match: re.Match[str]) -> str:
        new, gone = changed(match[2])
        return f"{match[1]}+{new} −{gone} |"

    return ROW.sub(row, page)


if __name__ == "__main__":
    PAGE.write_text(counted(PAGE.read_text("utf-8")), "utf-8")
