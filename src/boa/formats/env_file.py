"""Files of environment variables: `NAME=value` lines, as .env files have them.

Blank lines and those that begin with # say nothing; `export` may stand before a name. A value in
single quotes is taken as it is, one in double quotes with \\n, \\t, \\" and \\\\ in it; without
quotes it ends at " #". Nothing is expanded: what stands there is what the job sees.
"""

import re
from pathlib import Path

from boa.errors import FileError, InputError

MAX_BYTES = 256 * 1024
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_SINGLE = re.compile(r"'([^']*)'\s*(?:#.*)?")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def read_env_file(path: Path) -> dict[str, str]:
    """Variables by name; of one that is named twice the last counts. An error names the line, never
    the value, which may be a secret."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as trouble:
        problem = (trouble.strerror or str(trouble)).lower()
        raise FileError(f"env_file {path}", problem, "a file that can be read") from None
    if len(data) > MAX_BYTES:
        problem = f"is longer than {MAX_BYTES // 1024} KB"
        raise FileError(f"env_file {path}", problem, "NAME=value lines")
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise FileError(f"env_file {path}", "is not UTF-8", "NAME=value lines") from None
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            name, value = _variable(text, f"env_file {path}, line {number}")
            found[name] = value
    return found


def _variable(text: str, where: str) -> tuple[str, str]:
    match = _LINE.fullmatch(text)
    if match is None:
        raise InputError(where, None, "NAME=value", "no variable is set by it")
    name, rest = match[1], match[2]
    if rest[:1] == "'":
        return name, _quoted(_SINGLE.fullmatch(rest), where)
    if rest[:1] == '"':
        value = _quoted(_DOUBLE.fullmatch(rest), where)
        return name, re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), value)
    return name, re.split(r"\s#", rest, maxsplit=1)[0].rstrip()


def _quoted(match: "re.Match[str] | None", where: str) -> str:
    if match is None:
        expected = "a value in one pair of quotes, on one line"
        raise InputError(where, None, expected, "its quotes do not match")
    return match[1]
