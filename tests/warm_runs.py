"""Runs of Python scripts, with and without a warm parent, for tests to compare."""

import os
import sys
import textwrap
from pathlib import Path
from typing import Any

from boa.model.runs import RunEvent, RunKey
from local_runs import Runs, until

MODULE = "preloaded"
WARM = "import os; warm = b'BOA_WARM=' in open('/proc/self/environ', 'rb').read()\n"
"""For scripts that want to know how they were started."""


class Scripts(Runs):
    """Scripts in one folder, that import a module of no use from another."""

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root, **options)
        self.modules, self.code = root / "modules", root / "code"
        for folder in (self.modules, self.code):
            folder.mkdir(exist_ok=True)
        self.module("")

    def module(self, text: str, name: str = MODULE) -> None:
        (self.modules / f"{name}.py").write_text(textwrap.dedent(text))

    def script(self, text: str, name: str = "script.py") -> str:
        (self.code / name).write_text(textwrap.dedent(text))
        return name

    def run(self, text: str, *arguments: str, warm: bool = True, **given: Any) -> RunKey:
        name = self.script(text, f"{given.get('job', '1')}.py")
        return self.command(sys.executable, name, *arguments, warm=warm, **given)

    def command(self, *words: str, warm: bool = True, **given: Any) -> RunKey:
        env = {"PYTHONPATH": f"{self.modules}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")}
        given.setdefault("preload", (MODULE,) if warm else ())
        given["env"] = {**env, **given.get("env", {})}
        return self.start(*words, workdir=str(self.code), **given)

    def both(self, *words: str, **given: Any) -> list[tuple[RunEvent, str]]:
        """How a command ends, and what it prints: cold, warm."""
        keys = [
            self.command(*words, warm=warm, job=job, attempt=1, **given)
            for job, warm in (("1", False), ("2", True))
        ]
        return [(self.end(key), self.log(key)) for key in keys]

    @property
    def parents(self) -> list[int]:
        return [parent.pid for parent in self.engine._warm._parents.values()]

    def parentless(self) -> bool:
        self.poll()
        return not self.parents

    def until_ready(self) -> None:
        def ready() -> bool:
            self.poll()
            found = self.engine._warm._parents.values()
            return bool(found) and all(parent.files is not None for parent in found)

        until(ready)

    def crash(self) -> None:
        self.engine.close()  # to its parents, no other than a service that is gone
        super().crash()
