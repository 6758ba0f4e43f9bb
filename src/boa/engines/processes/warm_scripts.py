"""Which commands run a Python script that a warm parent can fork, and what it had better import."""

import ast
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from boa.formats.job import SHELL
from boa.model.job import JobSpec
from boa.plain_file import read_plain

HEAVY = (
    "accelerate",
    "boa.train.torch",
    "lightning",
    "pytorch_lightning",
    "torch",
    "torchvision",
    "transformers",
)
"""Modules whose import takes longer than a fork. Not JAX, which begins threads."""
MOST_BYTES = 1024**2
"""Bytes of the longest script that is looked at."""
MOST_KNOWN = 1000
"""Scripts that are remembered."""
_TELLING = re.compile(
    rb"environ\s*\[[^\]]*\]\s*=(?!=)|environ\s*\.\s*(setdefault|update|pop|clear)|environ\s*\|="
    rb"|del\s+(os\s*\.\s*)?environ|putenv|unsetenv|dotenv|change_current_allocator"
)
"""In a script that changes variables, or how a GPU's memory is had."""
_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_PLAIN = re.compile(r"[\w@%+=:,./ -]+", re.ASCII)
"""Text that a shell takes for words, and nothing else once the first of them is Python."""
_Stamp: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Requirements of a command on its warm parent; parents of equal recipes are the same."""

    python: str
    """Absolute, links not followed: a virtual environment is where the link is."""
    modules: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    """All of it: nobody knows which variables matter to an import."""
    folder: str = "/"
    """Where it runs: matters if PYTHONPATH has relative folders in it."""


@dataclass(frozen=True, slots=True)
class Script:
    recipe: Recipe
    words: tuple[str, ...]
    """Words after `python` in the command."""
    may_wake: bool
    """Whether libraries may be woken before it runs: it does not tell them how, that is seen."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A script that was looked at."""

    modules: tuple[str, ...]
    """Heavy ones that it imports."""
    tells: bool
    """Whether it changes what libraries read when they begin: variables, nearly always."""


class Finder:
    """Looks at scripts; remembers what those say that have not changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Stamp, _Text | None]] = {}
        """Scripts by path, the one looked at last at the end."""

    def find(self, spec: JobSpec, workdir: str, env: Mapping[str, str]) -> Script | None:
        """None: to be started as any other command. `env`: what the parent would see."""
        if spec.launcher == "torchrun" or spec.preload == ():
            return None
        words = _words(spec.run)
        python = _python(words, workdir, env)
        if python is None:
            return None
        rest = tuple(words[1:])
        if rest[:1] == ("-u",) and env.get("PYTHONUNBUFFERED"):
            rest = rest[1:]
        source = _source(rest, workdir)
        found = self._look(source) if source else None
        if found is None and rest[:1] != ("-m",):
            return None
        modules = (found.modules if found else ()) if spec.preload is None else spec.preload
        if not modules:
            return None
        folder = workdir if _has_relative(env.get("PYTHONPATH"), workdir) else "/"
        recipe = Recipe(python, modules, tuple(sorted(env.items())), folder)
        return Script(recipe, rest, may_wake=found is not None and not found.tells)

    def _look(self, source: str) -> _Text | None:
        """None: no text, so what Python would do is unknown."""
        old = self._known.pop(source, None)
        try:
            stat = os.stat(source)
            stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size)
            if old is None or old[0] != stamp:
                old = stamp, _read(source) if stat.st_size <= MOST_BYTES else None
        except OSError:  # the job itself will say what is wrong with it
            return None
        self._known[source] = old
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return old[1]


def _read(source: str) -> _Text | None:
    text = read_plain(source, most=MOST_BYTES, follow=True)
    if not source.endswith(".py") or b"\0" in text:  # a zip, say: Python runs what is in it
        return None
    return _Text(heavy_imports(text), _TELLING.search(text) is not None)


def heavy_imports(source: bytes) -> tuple[str, ...]:
    """Modules worth having already, among those that a script imports when it begins."""
    try:
        found = set(_imported(ast.parse(source).body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(h for h in HEAVY if any(f == h or f.startswith(f"{h}.") for f in found))


def _imported(body: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
            yield statement.module
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)
        elif isinstance(statement, ast.Try | ast.If | ast.With):
            yield from _imported(statement.body)


def _words(run: Sequence[str]) -> Sequence[str]:
    """A string for the shell is its words, where the shell would make no more of it."""
    if tuple(run[:-1]) != SHELL:
        return run
    return run[-1].split() if _PLAIN.fullmatch(run[-1]) else ()


def _python(words: Sequence[str], workdir: str, env: Mapping[str, str]) -> str | None:
    if len(words) < 2 or not _PYTHON.fullmatch(os.path.basename(words[0])):
        return None
    if os.sep in words[0]:
        path = os.path.join(workdir, words[0])
        return os.path.abspath(path) if os.access(path, os.X_OK) else None
    found = shutil.which(words[0], path=env.get("PATH"))
    return found if found and os.path.isabs(found) else None


def _has_relative(path: str | None, workdir: str) -> bool:
    """Whether this search path leads below the folder that a job runs in."""
    relative = [place for place in path.split(":") if not os.path.isabs(place)] if path else []
    return any(os.path.isdir(os.path.join(workdir, place)) for place in relative)


def _source(words: Sequence[str], workdir: str) -> str | None:
    """The script's file; None where it cannot be told without importing something."""
    if words[:1] == ("-m",) and len(words) > 1:
        below = os.path.join(workdir, *words[1].split("."))
        places = [f"{below}.py", os.path.join(below, "__main__.py")]
    elif words and not words[0].startswith("-"):
        places = [os.path.join(workdir, words[0])]
    else:
        return None
    return next((place for place in places if os.path.isfile(place)), None)
