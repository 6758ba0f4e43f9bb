"""Runs as processes of this machine, which go on without the service.

Every run has a folder ROOT/JOB/ATTEMPT and a supervisor (`run_supervisor.py`, which also says what
is in the folder; `folders.py`, what is beside it). All that this engine knows is there, so another
one on the same ROOT knows it too. Folders are written in ROOT/.new: a run begins when its own is
moved into place.

Whoever finds a run without a supervisor sends it one. Any number may be sent: a supervisor first
takes the run by a rename, and only one can. So a warm parent (`parent_pool.py`) can be asked for
one, and another be sent where it does not come.
"""

import marshal
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from boa.atomic_file import replace_file
from boa.engines import launching
from boa.engines.folders import RunFolders
from boa.engines.processes import orphans, parent_pool, run_supervisor
from boa.engines.processes.warm_scripts import Finder, Recipe
from boa.model.cluster import JobId
from boa.model.runs import Launch, LogFile, RunEvent, RunKey
from boa.units import Seconds

CHECKED_AT_ONCE = 50
"""Supervisors that are no children of ours that one `poll` looks at; others tell by themselves."""
SUPERVISE = (
    "import sys; sys.path.append(sys.argv[1]); "
    "import run_supervisor; run_supervisor.main(sys.argv[2])"
)
"""Quicker than to run the file, which Python would compile every time."""
WARM_S: Seconds = 30.0
"""Not begun by a warm parent within this time, a run is sent another supervisor."""
NOBODY = "0.0.0"
"""Who takes a run so that no supervisor can."""


@dataclass(slots=True)
class _Run:
    key: RunKey
    folder: str
    supervisor: str = ""
    """PID, or PID.TICKS.BOOT where it is not ours; empty while there is none."""
    ours: bool = False
    """A child of this process: its number is nobody else's until we have heard of its end."""
    warm_until: Seconds | None = None
    """A warm parent was asked for a supervisor, which is waited for until then (monotonic)."""
    up_told: bool = False
    grace_s: Seconds | None = None
    """It was asked to stop, with this grace."""
    end: RunEvent | None = None

    @property
    def pid(self) -> int:
        return int(self.supervisor.partition(".")[0])

    def state(self) -> tuple[str, str]:
        """How far it is, and by whom: see `run_supervisor`."""
        with suppress(FileNotFoundError):  # somebody has deleted it
            for name in os.listdir(self.folder):
                stage, _, supervisor = name.partition(".")
                if stage in (run_supervisor.LAUNCH, run_supervisor.CLAIMED, run_supervisor.UP):
                    return stage, supervisor
        return "", ""

    def take_over(self) -> None:
        """So that no supervisor can have it, unless one is quicker."""
        with suppress(FileNotFoundError):
            claimed = f"{run_supervisor.CLAIMED}.{NOBODY}"
            os.rename(
                os.path.join(self.folder, run_supervisor.LAUNCH), os.path.join(self.folder, claimed)
            )

    def outcome(self) -> RunEvent | None:
        try:
            text = Path(self.folder, run_supervisor.OUTCOME).read_text("utf-8", "replace")
        except FileNotFoundError:
            return None
        code, stopped, reason = text.split("\n")[:3]
        return RunEvent(
            key=self.key,
            ended=True,
            exit_code=int(code) if code else None,
            stopped=stopped == "1",
            reason=reason.strip(),
        )


class LocalEngine:
    def __init__(
        self,
        root: Path,
        *,
        log_bytes: int,
        python: str = sys.executable,
        warm_parents: int = parent_pool.MOST,
    ) -> None:
        self._folders = RunFolders(root)
        self._log_bytes, self._python = log_bytes, python
        self._scripts, self._warm = Finder(), parent_pool.WarmParents(warm_parents)
        self._gpus = launching.has_gpus()
        self._new = os.path.abspath(root / ".new")
        shutil.rmtree(self._new, ignore_errors=True)
        os.makedirs(self._new, mode=0o700, exist_ok=True)
        self._runs: dict[RunKey, _Run] = {}
        self._over: dict[RunKey, RunEvent] = {}
        """Runs asked for that had ended and been forgotten: they are told of as lost."""
        self._next_check = 0
        for key in self._folders.known():
            self._find_again(key)

    # What the service asks

    def start(self, launch: Launch) -> None:
        """OSError (disk full, no more processes): not yet; to be asked again."""
        key = launch.key
        run = self._known(key)
        if run is None:
            if self._folders.exists(key):  # ended and forgotten: an old database is back
                self._over[key] = RunEvent(
                    key=key, ended=True, reason="such a run was there before"
                )
                return
            files, recipe = self._files_of(launch)
            run = self._begin(key, files)
            if recipe is not None and self._warm.ask(recipe, run.folder):
                run.warm_until = time.monotonic() + WARM_S
        if run.end is None and not run.supervisor and run.warm_until is None:
            self._supervise(run)

    def stop(self, key: RunKey, grace_s: Seconds) -> None:
        run = self._known(key)
        if run is None:
            if not self._folders.exists(key):  # decided on, and taken back before its start
                outcome = run_supervisor.outcome_text(0, True, "stopped before it began")
                run = self._begin(key, {run_supervisor.OUTCOME: outcome})
                run.end = run.outcome()
            else:
                self._over[key] = RunEvent(
                    key=key, ended=True, reason="such a run was there before"
                )
            return
        if run.end is not None or (run.grace_s is not None and run.grace_s <= grace_s):
            return
        stop = os.path.join(run.folder, run_supervisor.STOP)
        replace_file(stop, f"{grace_s:.3f}")
        _, supervisor = run.state()  # who takes it later than this sees the file
        if supervisor:
            pid = int(supervisor.partition(".")[0])
            if run_supervisor.identity(pid) == supervisor:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        elif not run.supervisor:
            self._supervise(run)  # it will see that there is nothing to start
        run.grace_s = grace_s

    def poll(self) -> Sequence[RunEvent]:
        self._settle(self._dead(self._await_warm()))
        events = list(self._over.values())
        for run in self._runs.values():
            if not run.up_told and run.state()[0] == run_supervisor.UP:
                run.up_told = True
                events.append(RunEvent(key=run.key, ended=False))
            if run.end is not None:
                events.append(replace(run.end, age_s=self._folders.age(run.key)))
        return events

    def runs(self) -> Collection[RunKey]:
        return list(self._runs)

    def forget(self, key: RunKey) -> None:
        self._over.pop(key, None)
        run = self._runs.get(key)
        if run is not None and run.end is not None:
            self._folders.unmark(key)
            del self._runs[key]
            self._folders.tidy(key, self._runs)

    def logs(self, job: JobId) -> Sequence[LogFile]:
        return self._folders.logs(job)

    def close(self) -> None:
        self._warm.close()
        self._runs.clear()

    # Beginnings

    def _files_of(self, launch: Launch) -> tuple[dict[str, bytes], Recipe | None]:
        """The contents of a run's folder, and the warm parent that can begin it, if one can."""
        workdir = launch.spec.workdir or self._folders.work(launch.key.job)
        with suppress(OSError):  # the job itself will say what is wrong with it
            os.makedirs(launch.checkpoint_dir, exist_ok=True)
        plans = launching.plans(launch, port=launching.free_port(), gpus=self._gpus)
        script = self._scripts.find(launch.spec, workdir, launching.shared(launch, os.environ))
        if script is not None:
            for plan in plans:
                plan["script"] = list(script.words)
        document = {
            "plans": plans,
            "workdir": workdir,
            "grace_s": launch.spec.grace_s,
            "log_bytes": self._log_bytes,
        }
        # marshal's version 2 is the same in every Python that may run the supervisor
        files = {
            run_supervisor.LAUNCH: marshal.dumps(document, 2),
            run_supervisor.RESERVE: b" " * run_supervisor.RESERVED,
        }
        return files, script.recipe if script else None

    def _begin(self, key: RunKey, files: dict[str, bytes]) -> _Run:
        """The run's folder with all of this in it, or no folder."""
        os.makedirs(self._folders.home(key.job), exist_ok=True)
        folder = tempfile.mkdtemp(dir=self._new)
        try:
            for name, data in files.items():
                with open(os.path.join(folder, name), "xb") as file:
                    file.write(data)
            Path(self._folders.marker_of(key)).touch()
            os.rename(folder, self._folders.folder(key))
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        run = self._runs[key] = _Run(key, self._folders.folder(key))
        return run

    def _supervise(self, run: _Run) -> None:
        pid = os.posix_spawnp(
            self._python,
            [
                self._python,
                "-I",
                "-S",
                "-c",
                SUPERVISE,
                os.path.dirname(run_supervisor.__file__),
                run.folder,
            ],
            launching.inherited(os.environ),
            file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)],
            setsid=True,
            setsigmask=[],
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )
        run.supervisor, run.ours, run.warm_until = str(pid), True, None

    def _await_warm(self) -> set[str]:
        """Who has come from a warm parent; to runs where nobody will, send a supervisor.

        Gives the folders of runs whose supervisor may have gone, as parents say.
        """
        going = [run for run in self._runs.values() if run.end is None]
        given_up = self._warm.tend([run.folder for run in going])
        now = time.monotonic()
        for run in going:
            if run.warm_until is None:
                continue
            _, supervisor = run.state()
            if supervisor:
                run.supervisor, run.warm_until = supervisor, None
            elif run.folder in given_up or now >= run.warm_until:
                if now >= run.warm_until:
                    self._warm.late(run.folder, WARM_S)
                run.warm_until = now  # should there be no more processes: the next time
                with suppress(OSError):
                    self._supervise(run)
        return given_up

    def _known(self, key: RunKey) -> _Run | None:
        if key not in self._runs and self._folders.exists(key):
            # the machine went down before it was on the disk
            Path(self._folders.marker_of(key)).touch()
            self._find_again(key)
        return self._runs.get(key)

    def _find_again(self, key: RunKey) -> None:
        run = _Run(key, self._folders.folder(key))
        state, run.supervisor = run.state()
        run.end = run.outcome()
        if not state and run.end is None:  # forgotten, or its folder never came to be
            self._folders.unmark(key)
            return
        self._runs[key] = run
        if state == run_supervisor.LAUNCH:
            with suppress(OSError):  # `start` will be asked again, and tell
                self._supervise(run)

    # Endings

    def _dead(self, told: Collection[str]) -> list[_Run]:
        """Runs whose supervisor is no more; of those not ours, some are looked at, and all `told`.

        A warm parent tells, but may hang: so its runs have their turn like all others.
        """
        running = [run for run in self._runs.values() if run.end is None and run.supervisor]
        others = [run for run in running if not run.ours]
        first = self._next_check if self._next_check < len(others) else 0
        self._next_check = first + CHECKED_AT_ONCE
        return [
            *(run for run in running if run.ours and orphans.reaped(run.pid)),
            *(
                run
                for number, run in enumerate(others)
                if (first <= number < self._next_check or run.folder in told)
                and run_supervisor.identity(run.pid) != run.supervisor
            ),
        ]

    def _settle(self, dead: Iterable[_Run]) -> None:
        """How they ended; or that another supervisor has them, or that nobody knows."""
        lost = []
        for run in dead:
            if not run.ours:
                orphans.bury(run.supervisor)
            run.ours = False
            run.take_over()
            _, run.supervisor = run.state()
            if run.supervisor and run_supervisor.identity(run.pid) == run.supervisor:
                continue
            run.end = run.outcome()
            if run.end is None:
                lost.append(run)
        self._lose(lost)

    def _lose(self, runs: Collection[_Run]) -> None:
        if not runs:
            return
        marks = {found for run in runs if (found := _marks(run))}
        orphans.kill(marks, {run.supervisor for run in runs})
        for run in runs:
            died = "was killed, or the machine restarted"
            why = "could not be started" if run.supervisor == NOBODY else died
            reason = f"lost: its supervisor {why}"
            run.end = RunEvent(key=run.key, ended=True, reason=reason)
            with suppress(OSError):  # a full disk: it is found again to be lost
                run_supervisor.write_outcome(run.folder, None, False, reason)


def _marks(run: _Run) -> orphans.Marks | None:
    try:
        document = marshal.loads(Path(run.folder, ".".join(run.state())).read_bytes())
    except (
        OSError,
        EOFError,
        ValueError,
        TypeError,
    ):  # deleted; cut off when the machine went down
        return None
    return orphans.marks_of(document["plans"][0]["env"])
