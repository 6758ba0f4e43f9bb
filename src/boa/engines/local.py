"""Runs as processes of this machine, which go on without the service.

Every run has a folder ROOT/JOB/ATTEMPT and a supervisor (`run_supervisor.py`, which also says what
is in the folder; `folders.py`, what is beside it). All that this engine knows is there, so another
one on the same ROOT knows it too. Folders are written in ROOT/.new: a run begins when its own is
moved into place.

Whoever finds a run without a supervisor sends it one. Any number may be sent: a supervisor first
takes the run by a rename, and only one can. So a warm parent (`parent_pool.py`) can be asked for
one, and another be sent where it does not come.
"""

import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from boa.engines import folders, spares
from boa.engines.base import NotOver
from boa.engines.environments import NoPlace
from boa.engines.folders import RunFolders
from boa.engines.keepers import SHARE
from boa.engines.launching import has_gpus
from boa.engines.local_ends import kill_overdue, kill_strays, not_over
from boa.engines.local_launch import Beginnings, packed_secrets
from boa.engines.local_run import LocalRun
from boa.engines.processes import cgroups, orphans, parent_pool, run_files, run_supervisor
from boa.engines.processes.beginning import begun
from boa.engines.processes.warm_scripts import Recipe
from boa.engines.spares import Spares
from boa.engines.users import NoSuchUser
from boa.model.cluster import JobId
from boa.model.runs import Launch, LogFile, RunEvent, RunKey
from boa.model.service import RunAs
from boa.packing.archive import BadPackage
from boa.private_files import private_file, private_folder
from boa.units import Seconds

LOOKED_AT_ONCE = 10
"""Runs whose folders one `poll` looks into, once they are up."""
CHECKED_AT_ONCE = 50
"""Supervisors that are no children of ours that one `poll` looks at; others tell by themselves."""
SUPERVISE = (
    "import sys; sys.path.append(sys.argv[1]); "
    "import run_supervisor; run_supervisor.main(sys.argv[2])"
)
"""Quicker than to run the file, which Python would compile every time."""
SLACK_S: Seconds = 10.0
"""Beyond the grace, for a supervisor to see to it; then the service kills the run itself."""
UNASKED_S: Seconds = 10.0
"""For the service to ask for a run that was found not begun; one that it takes for running it never
asks for: a disk may have forgotten that it had begun, and the machine not have restarted."""
WARM_S: Seconds = 30.0
"""Not begun by a warm parent within this time, a run is sent another supervisor."""
_log = logging.getLogger("boa.engines")


class LocalEngine:
    def __init__(
        self,
        root: Path,
        *,
        log_bytes: int,
        python: str = sys.executable,
        warm_parents: int = parent_pool.MOST,
        pass_env: Sequence[str] = (),
        run_as: RunAs | None = None,
        memory_share: float = SHARE,
        prepares: bool | None = None,
    ) -> None:
        """`pass_env`: variables of the service's environment that jobs see, beside the usual.
        `run_as`: who jobs run as; None: who we are. `memory_share`: of this machine's memory, for
        state that stays there between two runs of a job. `prepares`: whether runs that follow
        others are prepared before those stop; None: if there are GPUs, which take time to wake."""
        self._folders = RunFolders(root)
        self._python, self._warm = python, parent_pool.WarmParents(warm_parents)
        self._beginnings = Beginnings(
            self._folders,
            log_bytes=log_bytes,
            pass_env=pass_env,
            run_as=run_as,
            python=python,
            memory_share=memory_share,
        )
        self._new = os.path.abspath(root / ".new")
        folders.remove(self._new)
        private_folder(self._new)
        self._prepares = has_gpus() if prepares is None else prepares
        self._spares = Spares(self._new, self._warm)
        self._held: dict[RunKey, tuple[Seconds, Seconds]] = {}
        """Stops that wait for the next run to be prepared: their grace, and since when."""
        self._root = orphans.root_of(self._folders.root, self._folders.born())
        self._cgroups = cgroups.place()
        self._runs: dict[RunKey, LocalRun] = {}
        self._over: dict[RunKey, RunEvent] = {}
        """Runs asked for that had ended and been forgotten: they are told of as lost."""
        self._next_check = self._next_look = 0
        marked = orphans.marked(self._root, self._cgroups)  # these began before runs are listed
        for key in self._folders.known():
            self._find_again(key)
        known = {run.mark for run in self._runs.values()}
        self._strays = kill_strays(marked - known, self._cgroups)

    # What the service asks

    def start(self, launch: Launch) -> None:
        """OSError (disk full, no more processes): not yet; to be asked again."""
        key, secrets = launch.key, packed_secrets(launch)
        run = self._known(key)
        if run is None:
            if self._folders.exists(key):  # ended and forgotten: an old database is back
                self._was_before(key)
                return
            self._check_alone(key)
            planned = self._new_run(key)
            try:
                beginning = self._beginnings.of(launch, planned.mark, planned.cgroup)
            except (NoSuchUser, NoPlace) as trouble:
                self._end_unbegun(key, None, False, str(trouble))
                return
            except (BadPackage, FileNotFoundError) as trouble:
                if not launch.package:
                    raise
                why = f"its package {launch.spec.package[:12]} cannot be unpacked: {trouble}"
                self._end_unbegun(key, None, False, why)
                return
            run = self._begin(key, beginning.files, recipe := beginning.recipe)
            if recipe is not None and self._warm.ask(recipe, run.folder, secrets):
                run.warm_until = time.monotonic() + WARM_S
        run.secrets = secrets  # until somebody has taken it
        if not run.dead and not run.supervisor and run.warm_until is None:
            self._supervise(run)

    def stop(self, key: RunKey, grace_s: Seconds, then: Launch | None = None) -> None:
        run = self._known(key)
        if run is None:
            if not self._folders.exists(key):  # decided on, and taken back before its start
                self._end_unbegun(key, 0, True, "stopped before it began")
            else:
                self._was_before(key)
            return
        if then is None:
            self._spares.drop(key.job)
        if run.dead or (run.grace_s is not None and run.grace_s <= grace_s):
            return
        if then is not None and self._prepares and run.grace_s is None:
            if key not in self._held:
                self._prepare(then)
            least, since = self._held.get(key, (grace_s, time.monotonic()))
            self._held[key] = min(grace_s, least), since
            self._stop_held()
            return
        self._held.pop(key, None)
        self._stop(run, grace_s)

    def _stop(self, run: LocalRun, grace_s: Seconds) -> None:
        try:
            private_folder(run.folder)  # its job may have deleted it: the outcome needs a place
            run_files.replace_plain(run.folder, run_supervisor.STOP, f"{grace_s:.3f}".encode())
        except OSError:  # the disk is full, or it is a folder
            if not run.state()[1] and not run.supervisor:
                raise
        # who takes it later than this sees the file; one that somebody has stopped goes on
        stage, _ = run.state()
        waits = stage == run_supervisor.LAUNCH
        taken = not waits and run.signal_supervisor(signal.SIGTERM, signal.SIGCONT)
        if not taken and not run.supervisor:
            self._supervise(run)  # it will see that there is nothing to start
        run.asked_to_stop(grace_s, time.monotonic() + grace_s + SLACK_S)

    def _prepare(self, launch: Launch) -> None:
        expected = self._beginnings.expected(launch)
        if expected is not None:
            self._spares.prepare(launch.key.job, expected.recipe, expected.plans)

    def poll(self) -> Sequence[RunEvent]:
        self._stop_held()
        kill_overdue(self._runs.values(), time.monotonic())
        self._beginnings.keepers.tend()
        for run in self._runs.values():
            run.give_up(time.monotonic())
        self._settle(self._dead(self._await_warm()))
        self._conclude()
        self._look_for_left()
        events = list(self._over.values())
        for run in self._runs.values():
            if not run.up_told and run.state()[0] in (run_supervisor.UP, run_supervisor.LEFT):
                run.up_told = True
                events.append(RunEvent(key=run.key, ended=False))
            if run.saved_news and run.end is None:
                run.saved_news = False
                saved_age_s = _age_s(run.saved_told)
                events.append(
                    RunEvent(key=run.key, ended=False, saved=True, saved_age_s=saved_age_s)
                )
            if run.hindrance and (news := run.news) is not None:
                events.append(news)
            if run.end is not None:
                age_s, saved_age_s = (
                    self._folders.age(run.key),
                    _age_s(run_files.saved_at(run.folder)),
                )
                events.append(replace(run.end, age_s=age_s, saved_age_s=saved_age_s))
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

    def _begin(
        self, key: RunKey, files: dict[str, bytes], recipe: Recipe | None = None
    ) -> LocalRun:
        """The run's folder with all of this in it, or no folder."""
        private_folder(self._folders.home(key.job))
        folder = self._spares.take(key.job, recipe) or tempfile.mkdtemp(dir=self._new)
        run = self._new_run(key)
        try:
            if run_supervisor.LAUNCH in files:
                cgroups.make(run.cgroup)
            for name, data in files.items():
                private_file(os.path.join(folder, name), data)
            Path(self._folders.marker_of(key)).touch(mode=0o600)
            os.rename(folder, self._folders.folder(key))
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            cgroups.remove(run.cgroup)
            raise
        self._runs[key] = run
        return run

    def _end_unbegun(self, key: RunKey, code: int | None, stopped: bool, why: str) -> None:
        outcome = run_files.outcome_text(code, stopped, why)
        run = self._begin(key, {run_files.OUTCOME: outcome})
        run.dead, run.end = True, run.outcome()

    def _new_run(self, key: RunKey) -> LocalRun:
        mark = orphans.mark_of(self._root, key.job, key.attempt)
        return LocalRun(key, self._folders.folder(key), mark, cgroups.path_of(self._cgroups, mark))

    def _check_alone(self, key: RunKey) -> None:
        """That nothing of an earlier run of the same job is there: an old database may be back,
        or files of a run may have gone that goes on."""
        for run in self._runs.values():
            if run.key.job == key.job and run.found_again and run.end is None:
                raise NotOver(run.hindrance or f"attempt {run.key.attempt} is not over")
        mine = orphans.mark_of(self._root, key.job, 0) >> 8
        if any(stray.mark >> 8 == mine for stray in self._strays):
            self._strays = orphans.kill(self._strays)
        for stray, left in self._strays.items():
            if stray.mark >> 8 == mine:
                raise NotOver(f"{left} of an earlier attempt cannot be ended")

    def _supervise(self, run: LocalRun) -> None:
        beside = os.path.dirname(run_supervisor.__file__)
        given = run_files.in_memory(run.secrets)
        try:
            words = [self._python, "-I", "-S", "-c", SUPERVISE, beside, run.folder]
            pid = begun(words, self._beginnings.inherited(), given)
        finally:
            os.close(given)
        spares.send_away(run.folder)
        run.secrets = b""
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
                run.supervisor, run.warm_until, run.secrets = supervisor, None, b""
            elif run.folder in given_up or now >= run.warm_until:
                if now >= run.warm_until:
                    self._warm.late(run.folder, WARM_S)
                run.warm_until = now  # should there be no more processes: the next time
                with suppress(OSError):
                    self._supervise(run)
        return given_up

    def _known(self, key: RunKey) -> LocalRun | None:
        if key not in self._runs and self._folders.exists(key):
            # the machine went down before it was on the disk
            Path(self._folders.marker_of(key)).touch(mode=0o600)
            self._find_again(key)
        return self._runs.get(key)

    def _find_again(self, key: RunKey) -> None:
        """A run that nobody has taken waits for `start` to be asked again: it may be one that was
        over and came back in a power cut, and its job may run by now."""
        run = self._new_run(key)
        run.found_again = True
        stage, run.supervisor = run.state()
        ended = run.outcome() is not None
        if not stage and not ended:  # forgotten, or its folder never came to be
            self._folders.unmark(key)
            return
        self._runs[key] = run
        if stage == run_supervisor.LAUNCH and not ended:
            launched = run.launched()
            if launched is None or launched.get("boot", orphans.boot()) != orphans.boot():
                run.take_over()  # unless a supervisor was quicker that is on its way
                _, run.supervisor = run.state()
                run.dead = not run.is_supervised
            else:
                run.ask_until = time.monotonic() + UNASKED_S
        else:
            run.dead = ended and not run.is_supervised

    def _was_before(self, key: RunKey) -> None:
        reason = "such a run was there before"
        self._over[key] = RunEvent(key=key, ended=True, run_lost=True, reason=reason)

    # Endings

    def _stop_held(self) -> None:
        for key, (grace_s, since) in list(self._held.items()):
            run = self._runs.get(key)
            if run is None or run.dead:
                del self._held[key]
            elif not self._spares.waits(key.job):
                with suppress(OSError):  # the disk is full: the next time
                    self._stop(run, grace_s)
                    run.prepared_s = time.monotonic() - since
                    del self._held[key]

    def _dead(self, told: Collection[str]) -> list[LocalRun]:
        """Runs whose supervisor is no more; of those not ours, some are looked at, and all `told`.

        A warm parent tells, but may hang: so its runs have their turn like all others.
        """
        running = [run for run in self._runs.values() if not run.dead and run.supervisor]
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

    def _settle(self, dead: Iterable[LocalRun]) -> None:
        """Runs that no supervisor has any more, unless another one has."""
        for run in dead:
            if not run.ours:
                orphans.bury(run.supervisor)
            run.ours = False
            run.take_over()
            _, run.supervisor = run.state()
            run.dead = not run.is_supervised

    def _conclude(self) -> None:
        """How runs ended that are dead: as is written down, or lost."""
        now = time.monotonic()
        dead = [
            run
            for run in self._runs.values()
            if run.dead and run.end is None and now >= run.look_at
        ]
        over = {run: run.outcome() for run in dead}
        for run in not_over(over, now):
            del over[run]
        for run, written in over.items():
            run.end = written or run.unexplained()
            if not run.end.stopped:  # by itself: its job may be over
                self._spares.drop(run.key.job)
            if run.end.run_lost:
                _log.warning("job %s, attempt %d: %s", run.key.job, run.key.attempt, run.end.reason)
            if written is None:
                run.write_down()

    def _look_for_left(self) -> None:
        """Ask some supervisors whether they wait for processes that cannot be ended or have seen
        a checkpoint, and some jobs whether they want a keeper."""
        running = [run for run in self._runs.values() if run.up_told and not run.dead]
        first = self._next_look if self._next_look < len(running) else 0
        self._next_look = first + LOOKED_AT_ONCE
        for run in running[first : self._next_look]:
            run.look_for_left()
            run.look_for_saved()
            self._beginnings.keepers.look(self._folders.keeper(run.key.job))


def _age_s(at: Seconds | None) -> Seconds:
    """Return how long ago something happened, in real time; 0: it did not."""
    return 0.0 if at is None else max(time.time() - at, 0.0)
