"""Commands that a page shows, read from its text and run as they stand there.

In fenced blocks a line that begins with `$ ` is a command (a `\\` at its end goes on in the next
line), and what follows it is what it prints: `…` stands for anything, and lines may be left out.
Blocks of Python are run as they are. A comment on the line before a block says otherwise:

<!-- not run: WHY -->     nothing of it is run
<!-- file: NAME -->       it is the text of that file
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ports import held_port

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"(?:^<!-- (?P<word>not run|file): (?P<about>[^\n]+) -->\n)?"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
PART = re.compile(r"^## (.+)$", re.MULTILINE)
CARRIED = ("source ", "export ")
"""Beginnings of commands that change the shell itself: those after them need them too."""
LONGEST_S = 600.0
"""Limit for a command that hangs, on a machine that has other things to do."""
ENDED = "\n(it has ended)\n"
PORT = "8420"
"""The service's own, for which a test takes a free one."""


@dataclass(frozen=True)
class Block:
    """A fenced block, and the comment before it."""

    language: str
    text: str
    word: str = ""
    about: str = ""

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Commands with the lines that they are shown to print."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and line.strip():
                found[-1][1].append(line.rstrip())
        return found


def blocks(text: str) -> list[Block]:
    """Fenced blocks in order."""
    return [
        Block(found["language"], _unindented(found), found["word"] or "", found["about"] or "")
        for found in BLOCK.finditer(text)
    ]


def _unindented(found: re.Match[str]) -> str:
    return re.sub(f"^{found['indent']}", "", found["text"], flags=re.MULTILINE)


def parts(text: str) -> dict[str, str]:
    """Text under each heading of the second level."""
    named = PART.split(text)[1:]
    return dict(zip(named[::2], named[1::2], strict=True))


def matches(shown: list[str], said: str) -> str | None:
    """The first line that is shown and was not said, in this order; None: all were."""
    lines = iter(said.splitlines())
    for line in shown:
        wanted = re.compile(".*".join(map(re.escape, line.split("…"))) + r"\s*")
        if not any(wanted.fullmatch(other) for other in lines):
            return line
    return None


@dataclass
class Shell:
    """Runs commands in a folder; services that they start go on beside them."""

    folder: Path
    environment: Mapping[str, str]
    port: int
    services: list["Service"] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)

    def run(self, block: Block) -> None:
        """Run a block as its language and its comment say; fail by its first wrong command."""
        match block:
            case Block(word="not run"):
                return
            case Block(word="file"):
                (self.folder / block.about).write_text(block.text, "utf-8")
            case Block(language="python"):
                self._ended([sys.executable, "-c", block.text], block.text, [])
            case _:
                for command, shown in block.commands:
                    self._command(command, shown)

    def _command(self, command: str, shown: list[str]) -> None:
        shown = [line.replace(PORT, str(self.port)) for line in shown]
        if command.startswith(CARRIED):
            self.carried.append(command)
        if re.match(r"boa serve\b", command):
            self._serve(command, shown)
        else:
            script = "; ".join(["set -e", *self.carried, command])
            self._ended(["bash", "-c", script], command, shown)

    def _ended(self, words: list[str], command: str, shown: list[str]) -> None:
        done = subprocess.run(
            words,
            cwd=self.folder,
            env={**self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}"
        missing = matches(shown, done.stdout)
        assert missing is None, f"$ {command}\nshown, but not said: {missing}\n{done.stdout}"

    def _serve(self, command: str, shown: list[str]) -> None:
        """Start a service, and go on once it has said what the page shows of it."""
        assert shown, "a page that starts a service shows what it says: one waits for that"
        words = re.sub(r"^boa serve", f"exec boa serve --port {self.port}", command)
        service = Service(words, self.folder, self.environment)
        self.services.append(service)
        service.says(shown)

    def close(self) -> None:
        for service in self.services:
            service.close()


class Service:
    """A service in a terminal of its own, to which it says more than to a file."""

    def __init__(self, words: str, folder: Path, environment: Mapping[str, str]) -> None:
        ours, its = os.openpty()
        self.process = subprocess.Popen(
            ["bash", "-c", words], cwd=folder, env={**environment}, stdout=its, stderr=its
        )
        os.close(its)
        self.said, self.changed = "", threading.Condition()
        self.reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self.reader.start()

    def _read(self, terminal: int) -> None:
        """Take what it says for as long as it lives: a full terminal would stop it."""
        with os.fdopen(terminal, encoding="utf-8") as lines, contextlib.suppress(OSError):
            for line in lines:
                with self.changed:
                    self.said += line
                    self.changed.notify_all()
        with self.changed:
            self.said += ENDED
            self.changed.notify_all()

    def says(self, shown: list[str]) -> None:
        def settled() -> bool:
            return matches(shown, self.said) is None or self.said.endswith(ENDED)

        with self.changed:
            self.changed.wait_for(settled, LONGEST_S)
            assert matches(shown, self.said) is None, self.said

    def close(self) -> None:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(LONGEST_S)
        self.reader.join(LONGEST_S)


@contextmanager
def shell(folder: Path, **variables: str) -> Iterator[Shell]:
    """A shell with `boa` and `python` on its path, a state and a port of its own."""
    tools = folder / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name in ("python", "python3"):
        _program(tools / name, f'exec {sys.executable} "$@"')
    _program(tools / "boa", f'exec {sys.executable} -m boa "$@"')
    (tools / "activate").write_text(f'PATH="{tools}:$PATH"\n')
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BOA_")}
    with ExitStack() as after:
        port = after.enter_context(held_port())
        own = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(folder),
            "BOA_SERVER": f"http://127.0.0.1:{port}",
            "COLUMNS": "120",
            "NO_COLOR": "1",
        }
        made = Shell(folder, {**kept, **own, **variables}, port)
        after.callback(made.close)
        yield made


def _program(path: Path, words: str) -> None:
    path.write_text(f"#!/bin/sh\n{words}\n")
    path.chmod(0o755)
