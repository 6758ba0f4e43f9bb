"""Where output goes: results on stdout, everything else on stderr; files whole or not at all."""

import json
import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boa.amounts import duration
from boa.atomic_file import replace_file
from boa.cli import markup
from boa.errors import FileError

if TYPE_CHECKING:
    from boa.cli.tables import Table

PIPE_WIDTH = 120
"""Columns that tables may use where there is no terminal to ask."""
LONGEST = 480
"""Characters of an error: a few lines of a terminal, whatever the input was."""


class Screen:
    """Where results for people go: stdout, as wide as the terminal and with its styles."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        self.width = (
            shutil.get_terminal_size((PIPE_WIDTH, 24)).columns
            if terminal or ("COLUMNS" in os.environ)
            else PIPE_WIDTH
        )
        self.colour = has_styles(terminal)

    def print(self, *said: "str | Table", wrap: bool = True) -> None:
        """Text with marks, or tables; `wrap`: break lines between words where they end."""
        for one in said or ("",):
            for line in self.lines(one, wrap=wrap):
                sys.stdout.write(line + "\n")

    def lines(self, said: "str | Table", *, wrap: bool = True) -> Iterator[str]:
        if not isinstance(said, str):
            yield from said.lines(self.width, self.colour)
            return
        text = markup.styled(said)
        room = self.width if wrap else len(text.plain)
        for start, end in markup.lines(text.plain, room):
            yield text.written(start, end, self.colour)


def has_styles(terminal: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    dumb = os.environ.get("TERM", "") in ("dumb", "unknown")
    return bool(os.environ.get("FORCE_COLOR")) or (terminal and not dumb)


def console() -> Screen:
    return Screen()


def emit_json(document: Any) -> None:
    """One JSON document on stdout; strict, so a number that is none becomes null."""
    try:
        text = json.dumps(document, indent=2, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(document), indent=2, allow_nan=False)
    sys.stdout.write(text + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def note(text: str) -> None:
    """A line for the person at the terminal: on stderr, out of the way of results."""
    print(text, file=sys.stderr)


def note_written(files: Mapping[str, Path | None]) -> None:
    """`files`: by what is in them; None: not asked for."""
    for kind, path in files.items():
        if path is not None:
            note(f"{kind} written to {path}")


def say_error(problem: object) -> None:
    """One line on stderr, and no long one."""
    line = " ".join(str(problem).split())
    shown = line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
    note(f"error: {shown}")


def check_writable(path: Path | None, option: str) -> None:
    """Refuse, before any work is done, a file that could not be written after it."""
    if path is None:
        return
    folder = path.parent
    if path.is_dir():
        problem = "is a folder"
    elif not folder.is_dir():
        problem = f"there is no folder {folder}"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        problem = "permission denied"
    else:
        return
    raise FileError(f"{option} {path}", problem, "a file that can be written")


def check_outputs(inputs: Iterable[Path], outputs: Iterable[tuple[Path | None, str]]) -> None:
    """Refuse, before any work, what could not be written or would overwrite something else."""
    taken = {path.resolve(): "the input" for path in inputs}
    for path, option in outputs:
        check_writable(path, option)
        if path is None or (path.exists() and not path.is_file()):  # /dev/stdout and the like
            continue
        if path.resolve() in taken:
            problem = f"is {taken[path.resolve()]} too"
            raise FileError(f"{option} {path}", problem, "a file of its own")
        taken[path.resolve()] = f"the file of {option}"


def write_file(path: Path, content: str | bytes, option: str) -> None:
    """As `replace_file`; that it cannot be is the user's to mend."""
    try:
        replace_file(path, content)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise FileError(f"{option} {path}", reason, "a file that can be written") from None


class Progress:
    """The doing of a long step, for the line on stderr."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self.done: int = 0
        self.known: int | None = None

    def __call__(self, done: int, known: int) -> None:
        self.done, self.known = done, known

    def line(self, elapsed: float) -> str:
        count = "" if self.known is None else f" {self.done:,}/{self.known:,}"
        return f"{self.doing}…{count}  {duration(elapsed)}"


@contextmanager
def working(doing: str, delay: float = 0.7) -> Iterator[Progress]:
    """Show on stderr that something is going on, once it takes long; only to a terminal."""
    progress = Progress(doing)
    if not sys.stderr.isatty():
        yield progress
        return
    over = threading.Event()
    spinner = threading.Thread(target=_spin, args=(progress, over, delay), daemon=True)
    spinner.start()
    try:
        yield progress
    finally:
        over.set()
        spinner.join()


def _spin(progress: Progress, over: threading.Event, delay: float) -> None:
    began = time.monotonic()
    turn = 0
    if over.wait(delay):
        return
    while not over.wait(0.1):
        sign = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[turn % 10]
        line = f"{sign} {progress.line(time.monotonic() - began)}"
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()
        turn += 1
    sys.stderr.write("\r\x1b[2K")
    sys.stderr.flush()
