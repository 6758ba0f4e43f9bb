"""Reading YAML and JSON that a stranger wrote: bounded in size and depth, one error each."""

import json
import re
from pathlib import Path
from typing import Any

from boa.errors import FileError, shown

MAX_YAML_BYTES = 32 * 1024**2
MAX_JSON_BYTES = 1024**3
MAX_DEPTH = 64

# An explicit tag on text that does not fit it (`!!bool x`) ends in whatever PyYAML trips over.
_BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def read_document(path: str | Path) -> Any:
    """The value in a YAML or JSON file. JSON is told by its suffix or its opening brace."""
    name = str(path)
    text = read_text(path, MAX_JSON_BYTES)
    if name.endswith(".json") or text.lstrip()[:1] == "{":
        try:
            return json.loads(text, object_pairs_hook=_object)
        except (ValueError, RecursionError) as broken:
            if name.endswith(".json"):
                raise FileError(name, f"not JSON ({_one_line(broken)})", "a JSON object") from None
    return _read_yaml(name, text)


def read_text(path: str | Path, limit: int) -> str:
    name = str(path)
    expected = f"a readable text file of at most {limit // 1024**2} MB"
    try:
        size = Path(path).stat().st_size
        if size > limit:
            raise FileError(name, f"{size / 1024**2:.0f} MB long", expected)
        with Path(path).open("rb") as file:
            read = file.read(limit + 1)  # a device or a pipe does not say how long it is
        if len(read) > limit:
            raise FileError(name, f"over {limit // 1024**2} MB long", expected)
        return read.decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        raise FileError(name, f"not UTF-8 text (byte {bad.start})", expected) from None
    except FileNotFoundError:
        raise FileError(name, "no such file", expected) from None
    except OSError as problem:
        raise FileError(name, problem.strerror or str(problem), expected) from None


def _read_yaml(name: str, text: str) -> Any:
    if len(text) > MAX_YAML_BYTES:
        raise FileError(
            name,
            f"{len(text) / 1024**2:.0f} MB of YAML",
            f"at most {MAX_YAML_BYTES // 1024**2} MB of YAML (JSON may be larger)",
        )
    if _too_deep(text):
        raise FileError(name, f"nested deeper than {MAX_DEPTH}", "YAML or JSON")
    from yaml import YAMLError  # only here: JSON and a job's flags need none of it

    from boa.formats.plain_yaml import load_yaml

    try:
        return load_yaml(text)
    except (YAMLError, *_BROKEN) as broken:
        raise FileError(name, f"not YAML ({_one_line(broken)})", "YAML or JSON") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # json would silently keep the last
        keys = [key for key, _ in pairs]
        twice = next(key for n, key in enumerate(keys) if key in keys[:n])
        raise ValueError(f"the key {shown(twice)} occurs twice in one object")
    return found


def _too_deep(text: str) -> bool:
    """Whether libyaml, which recurses in C, might run off its stack. Errs towards yes."""
    depth = 0
    for bracket in re.sub(r"[^\[\]{}]+", "", text):
        depth = depth + 1 if bracket in "[{" else max(depth - 1, 0)
        if depth > MAX_DEPTH:
            return True
    deep_line = rf"\n(?: {{{16 * MAX_DEPTH}}}|\s*(?:[-?:]\s+){{{MAX_DEPTH}}})"
    return re.search(deep_line, f"\n{text}") is not None


def _one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split())[:160]
