"""A world: a service on a disk, its users and jobs, and the books that the observer keeps."""

import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _campaign import processes
from _campaign.disks import LoopDisk, PlainFolder
from _campaign.observer import Acknowledged, Book, Journal, Rented, User
from _campaign.processes import below, until
from _campaign.service import Service
from _campaign.shim import Shim
from boa.errors import BoaError

SPEED = 60.0
PRICE, GPUS, MOST_NODES = 1.0, 4, 6
CAP, BUDGETS = 12.0, (8.0, 20.0, 40.0)
TRAINEE = Path(__file__).with_name("trainee.py")
QUIET_S = 2.0
"""A world in which nothing is done for so long has something in its way."""


@dataclass(frozen=True)
class Means:
    """What works on this machine."""

    root: Path
    loop: bool
    preload: Path | None
    """The shim."""
    servers: list[Callable[[], list[int]]] = field(default_factory=list)
    """Processes beside all worlds, which no power cut reaches: databases, clusters."""


@dataclass
class World:
    """The local engine and the local cloud; others change parts of it."""

    means: Means
    luck: random.Random
    kind: str = "local"
    cap: float = CAP
    """The most that may be spent per hour, at any moment."""
    settled_s: float = 90.0
    """For all jobs to end and all nodes to be given back, once the faults are over."""
    target_s: float = 5.0
    """For somebody to be there who can be struck."""
    violations: list[str] = field(default_factory=list)
    stopped: set[int] = field(default_factory=set)
    """Processes that got SIGSTOP, and no SIGCONT yet."""
    told: list[str] = field(default_factory=list)
    """What has been done to it."""

    def __post_init__(self) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="world-", dir=self.means.root))
        (self.scratch / "locks").mkdir()
        (self.scratch / "home").mkdir()
        self.disk = LoopDisk(self.scratch) if self.means.loop else PlainFolder(self.scratch)
        self.data = self.disk.folder / "data"
        self.shim: Shim | None = None
        if self.means.preload is not None:
            page = self.scratch / "page"
            self.shim = Shim(self.means.preload, page, self.disk.folder)
        self.journal = Journal(self.scratch / "journal")
        self.said = Acknowledged(budgets=[BUDGETS[-1]])
        self.service = Service(self.scratch, self.data, self.settings(), self.environment())
        self.user = User(self.service.client(), self.said)
        self.book = Book(self.data / "cloud.json")
        self._submitted, self._simulated = 0, False

    # What other worlds change

    def settings(self) -> dict[str, Any]:
        return {
            "budget_per_hour": BUDGETS[-1],
            "max_spend_per_hour": self.cap,
            "speed": SPEED,
            "gpu_types": {"T4": {"price": PRICE, "gpus_per_node": GPUS, "max_nodes": MOST_NODES}},
            "keep_warm_s": 20,
            "backoff_s": 1,
            "refused_s": 5,
            "warm_parents": 2,
            "local": {"provision_s": 12, "release_s": 6},
        }

    def environment(self) -> Mapping[str, str]:
        return self.shim.environment if self.shim is not None else {}

    def second_settings(self) -> dict[str, Any]:
        """Of another service on the same database, in a folder of its own."""
        db = f"sqlite:///{self.data}/boa.db"
        return {"data_dir": str(self.scratch / "second"), "db": db}

    def rented(self) -> dict[str, Rented]:
        """The cloud's own book."""
        return self.book.rented()

    def is_empty(self) -> bool:
        """Whether the cloud itself has nothing rented any more."""
        return True

    def tick(self) -> None:
        """What the world does by itself while it is waited for."""

    def slack(self) -> float:
        """USD by which the ledger may differ from the cloud's book."""
        return 0.0

    def store_url(self) -> str:
        return f"sqlite:///{self.data}/boa.db"

    def recover(self) -> None:
        """What is around the service works again."""

    # What is done in it

    def submit(self) -> None:
        luck = self.luck
        self._submitted += 1
        name = f"j{self._submitted}"
        child = luck.choice(("none", "plain", "bare"))
        units, unit_s = luck.randint(8, 30), luck.choice((0.02, 0.05))
        warm = luck.random() < 0.5
        python = [sys.executable] if warm else [sys.executable, "-S"]
        command = [*python, TRAINEE, self.scratch / "journal", self.scratch / "locks"]
        self.user.submit(
            {
                "version": 1,
                "class": luck.choice(("red", "green")),
                "name": name,
                "run": [str(word) for word in (*command, name, units, unit_s, child)],
                "gpus": {"max": luck.choice((1, 1, 2, 3))},
                "retries": 1000,
                "grace_s": 60,
                "preload": ["json"] if warm else [],
                "total_work": units,
            }
        )

    def units(self, name: str) -> int:
        """How much there is to do."""
        job = self.service.client().job(self.said.jobs[name])
        return int(job["spec"]["run"][-3])

    def use(self) -> None:
        """Something that users do."""
        deed = self.luck.choice(("submit", "submit", "submit", "stop", "budget"))
        asked = self.said.stops | self.said.maybe_stops
        names = sorted(self.said.jobs.keys() - asked)
        if deed == "stop" and len(names) > 1:
            self.user.stop(self.luck.choice(names))
        elif deed == "budget":
            self.user.set_budget(self.luck.choice(BUDGETS))
        else:
            self.submit()

    def advance(self, most: int = 20, busy: bool = True) -> None:
        """Until a few more units were done, or nothing is done any more. `busy`: there is something
        to do, if need be by a new job."""
        if busy:
            self.be_busy()
        lines = len(self.journal.lines()) + self.luck.randint(0, most)

        def enough() -> bool:
            self.tick()
            return len(self.journal.lines()) >= lines

        with suppress(processes.NeverCame):
            until(enough, "", QUIET_S)

    def be_busy(self) -> None:
        """There is something to do, if need be by a new job."""
        over = {line.name for line in self.journal.lines() if line.more.get("over")}
        if not self.said.jobs.keys() - over - self.said.stops:
            self.submit()

    # Who is in it

    def everybody(self) -> list[int]:
        servers = [pid for found in self.means.servers for pid in found()]
        others = {*servers, *(pid for server in servers for pid in below(server))}
        return [pid for pid in below(os.getpid()) if pid not in others]

    def workers(self) -> list[int]:
        return self._ours(self.journal.pids("start"))

    def children(self) -> list[int]:
        return self._ours(self.journal.pids("child"))

    def _ours(self, pids: Iterable[int]) -> list[int]:
        """Those of our own descent: a number that is written down may be a stranger's by now."""
        mine = set(below(os.getpid()))
        return [pid for pid in pids if pid in mine]

    def supervisors(self) -> list[int]:
        """By the names of files in the folders of runs."""
        found = []
        with suppress(OSError):
            for path in (self.data / "runs").glob("*/*/*.*.*.*"):
                stage, pid = path.name.split(".")[:2]
                if stage in ("claimed", "up", "left"):
                    found.append(int(pid))
        return self._ours(found)

    def parents(self) -> list[int]:
        """Warm ones: the service's own children, and theirs that were not told what to be."""
        known = {*self.supervisors(), *self.workers()}
        mine = processes.children(self.service.pid) if self.service.pid else []
        return [p for p in mine if p not in known and "BOA_WARM" in processes.environment(p)]

    def simulations(self) -> list[int]:
        """Processes of what-ifs; one is asked for where there is none."""
        known = {*self.supervisors(), *self.workers(), *self.parents()}
        mine = processes.children(self.service.pid) if self.service.pid else []
        found = [pid for pid in mine if pid not in known and _is_spawned(pid)]
        if not found and not self._simulated:
            self._simulated = True
            with suppress(BoaError):
                self.user.client.what_if("day", policies=["boa"], budgets=[80.0])
        return found

    # What befalls it

    def tell(self, text: str) -> None:
        self.told.append(text)

    def violated(self, text: str) -> None:
        if text not in self.violations:
            self.violations.append(text)

    def go_on(self) -> None:
        """Whoever is stopped is not any more."""
        for pid in self._ours(self.stopped):
            processes.send(pid, signal.SIGCONT)
        self.stopped.clear()

    def up(self, may_refuse: bool = False) -> bool:
        """The service answers; or, where that may be, it has said why it does not."""
        ended = self.service.come_up()
        if ended is None:
            return True
        if not may_refuse or ended.code not in (1, 2) or not ended.words.startswith("error: "):
            self.violated(f"the service ended with {ended.code} at its start: {ended.words}")
        return False

    def switch_off(self) -> None:
        """Everybody is gone at once, as without power."""
        self.service.kill()
        processes.end_all(self.everybody)
        self.stopped.clear()

    def close(self) -> None:
        self.book.close()
        self.user.client.close()
        with suppress(BoaError, processes.NeverCame):
            self.switch_off()
        self.disk.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


def _is_spawned(pid: int) -> bool:
    return any("multiprocessing" in word for word in processes.command(pid))
