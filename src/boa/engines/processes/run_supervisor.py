"""The supervisor of one run of the local engine: a process of its own, begun by `main(FOLDER)`.

It lives in a session of its own, so a run goes on whatever becomes of the service. It starts the
run's processes, keeps their output within a limit, passes on a stop, says how it all ended, and
leaves no process behind. The files of FOLDER:

launch                    the run as the engine wrote it; the name of this file says how far it is:
claimed.PID.TICKS.BOOT    a supervisor has taken it, and this is which;
up.PID.TICKS.BOOT         its processes are up. (A rename is atomic and takes no space on the disk.)
left.PID.TICKS.BOOT       they are over, but for some that do not die of SIGKILL: it waits for them
lock                      locked while a process of the run lives: see `run_marks.py`
stop                      seconds of grace; written by the engine before it signals
reserve, outcome          space set aside for how it ended; how it ended
saved                     when the newest file of its checkpoint folder was written
RANK.log, RANK.old.log    the newest output of each worker

What it is told besides is in no file: the values of the job's secrets, through its standard input
or its parent's socket (`run_files.packed`). All that its workers print goes through a mask of them.
Workers may be another user's (`user` in the launch); it is not.

It runs without the rest of the package and imports next to nothing, so that hundreds of them are
cheap. That is also why it reads marshal instead of JSON, and why it has but few files beside it. A
warm parent (`parent_process.py`) runs it too, in the user's Python.
"""

import _thread
import errno
import os
import select
import time

TYPE_CHECKING = False  # `typing`, and `signal` with its `enum`, would take longer than all the rest
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any, NoReturn
else:
    import _signal
if TYPE_CHECKING or __package__:
    from boa.engines.processes import run_files, run_marks
    from boa.engines.processes.masking import Mask
    from boa.engines.processes.run_files import RESERVED, Log, attempt
    from boa.engines.processes.worker_user import become
else:  # alone, in whatever Python the job has
    import run_files
    import run_marks
    from masking import Mask
    from run_files import RESERVED, Log, attempt
    from worker_user import become

SIGTERM, SIGKILL = _signal.SIGTERM, _signal.SIGKILL
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""Exit codes of what could not be started, as shells have them."""
FAILED_GRACE_S = 5.0  # for the other workers, after one has failed
LEFTOVERS_S = 5.0  # for what workers left behind, to die of SIGKILL
LOOK_S, RETRY_S = 0.05, 1.0
SAVED_LOOK_S = 5.0  # between two looks at the checkpoint folder
CHUNK = 64 * 1024
LAUNCH, CLAIMED, UP, LEFT = "launch", "claimed", "up", "left"
STOP = "stop"
IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ENXIO)
"""Something else has the name of a file: waiting does not help, and the run is found to be lost."""


class Reborn(BaseException):
    """Raised in a forked worker: out of the supervisor's frames, to go on as something else."""


class Worker:
    """One process of the run, and its output."""

    user: "dict[str, Any] | None" = None
    """Who it is to be; None: who the supervisor is."""
    mask = Mask(())

    def __init__(self, plan: "dict[str, Any]", log_bytes: int) -> None:
        self.plan = plan
        self.log = Log(plan["rank"], log_bytes)
        self.pid = self.output = 0
        self.code: int | None = None

    def start(self, workdir: str, group: int) -> int:
        """Fork; gives a pipe that closes when the command runs, or else says why it does not."""
        self.output, out = os.pipe()
        problem, told = os.pipe()
        supervisor = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(workdir, group, supervisor, out, told)
        os.close(out)
        os.close(told)
        os.set_blocking(self.output, False)
        attempt(os.setpgid, self.pid, group)  # both sides do: either may be first
        return problem

    def _become(self, workdir: str, group: int, supervisor: int, out: int, told: int) -> "NoReturn":
        """In the forked process: turn into the worker, or say why not."""
        what = workdir
        try:
            attempt(os.setpgid, 0, group)
            if self.user is not None:
                become(self.user)  # before anything of the job's is looked at
            prctl(PR_SET_PDEATHSIG, SIGKILL)
            if os.getppid() != supervisor:  # it was killed before it could take us along
                os._exit(NOT_EXECUTABLE)
            _signal.set_wakeup_fd(-1)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.chdir(workdir)
            what = self.plan["argv"][0]
            self.execute(told)
        except Reborn:
            raise
        except BaseException as trouble:
            missing = isinstance(trouble, FileNotFoundError) and what != workdir
            why = getattr(trouble, "strerror", None) or str(trouble)
            whose = f" (as user {self.user['name']})" if self.user is not None else ""
            said = f"{NOT_FOUND if missing else NOT_EXECUTABLE} cannot start {what}{whose}: {why}"
            os.write(told, said.encode("utf-8", "replace")[:RESERVED])
        os._exit(NOT_EXECUTABLE)

    def execute(self, told: int) -> "NoReturn":
        """`told` closes by itself."""
        for ignored in (_signal.SIGPIPE, _signal.SIGXFSZ):  # by Python, and by nobody else
            _signal.signal(ignored, _signal.SIG_DFL)
        os.execvpe(self.plan["argv"][0], self.plan["argv"], {**os.environ, **self.plan["env"]})

    @staticmethod
    def are_up() -> None:
        """Told when all of the run's are."""

    def copy(self) -> bool:
        """One piece of output into the log; False if there is none."""
        try:
            data = os.read(self.output, CHUNK)
        except BlockingIOError:
            return False
        self.log.write(self.mask.feed(data) if data else self.mask.rest())
        return bool(data)


class Supervisor:
    def __init__(
        self, launch: "dict[str, Any]", wake: int, kind: "type[Worker]", stage: str
    ) -> None:
        self.wake, self.me = wake, os.getpid()
        self.workdir: str = launch["workdir"]
        self.grace_s: float = launch["grace_s"]
        self.stage = stage
        """The file whose name says how far it is."""
        self.lasting = "mark" in launch
        """Whether it is not over before all its processes are; on Ray, what is left is swept."""
        self.workers = [kind(plan, launch["log_bytes"]) for plan in launch["plans"]]
        for worker in self.workers:
            worker.user = launch.get("user")
            worker.mask = Mask(launch.get("secrets", {}).values())
            worker.plan["env"].update(launch.get("secrets", {}))
        self.outputs: dict[int, Worker] = {}
        self.poller = select.poll()
        self.poller.register(wake, select.POLLIN)
        self.stopped = self.killed = self.overdue = self.childless = False
        self.failure: tuple[int, str] | None = None
        self.deadline: float | None = None
        self.told: set[int] = set()
        self.group = 0
        first = launch["plans"][0]["env"] if launch["plans"] else {}
        self.sign: str = first.get("BOA_DONE", "")
        self.checkpoints: str = first.get("BOA_CHECKPOINT_DIR", "")
        self.saved, self.over = time.time(), False
        if self.sign:
            attempt(os.unlink, self.sign)  # of an older attempt of that number

    def start(self) -> bool:
        """Whether all workers are up; if one cannot be, the others are killed."""
        problems = []
        for worker in self.workers:
            problems.append(worker.start(self.workdir, self.group))
            self.group = self.group or worker.pid
            self.outputs[worker.output] = worker
            self.poller.register(worker.output, select.POLLIN)
        for worker, problem in zip(self.workers, problems, strict=True):
            said = os.read(problem, RESERVED).decode("utf-8", "replace")
            os.close(problem)
            if said and self.failure is None:
                code, _, why = said.partition(" ")
                self.failure = (int(code), why)
                worker.log.write(f"[boa] {why}\n".encode())
        if self.failure is not None:
            self.kill()
        return self.failure is None

    def run(self) -> None:
        """Until no worker is left, nor, after a stop, what a worker's shell had begun."""
        self.reap()
        while self.living() or self.winding_down():
            for fd, _ in self.poller.poll(self.patience_ms()):
                if fd == self.wake:
                    self.heed()
                elif not self.outputs[fd].copy():
                    self.poller.unregister(fd)
            self.reap()
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.overdue = bool(self.living())
                self.kill()

    def watch(self) -> None:
        """Note when checkpoints are written. In a thread: a network disk may take its time."""
        while not self.over:
            time.sleep(SAVED_LOOK_S)
            self.look()

    def look(self) -> None:
        if self.over:
            return
        newest = run_files.newest_file(self.checkpoints, self.saved)
        if newest and not self.over:
            self.saved = newest
            attempt(run_files.replace_plain, ".", run_files.SAVED, b"%.3f" % newest)

    def is_done(self) -> bool:
        """Whether it has left the sign that its work is finished; gone from then on."""
        if not self.sign or not os.path.lexists(self.sign):
            return False
        attempt(os.unlink, self.sign)
        return True

    def living(self) -> "list[Worker]":
        return [worker for worker in self.workers if worker.pid > 0 and worker.code is None]

    def patience_ms(self) -> int | None:
        if not self.living():
            return int(LOOK_S * 1000)
        if self.deadline is None:
            return None
        return max(0, int((self.deadline - time.monotonic()) * 1000) + 1)

    def heed(self) -> None:
        """Signals that have come."""
        try:
            signals = os.read(self.wake, CHUNK)
        except BlockingIOError:
            return
        if SIGTERM in signals:
            self.stop()

    def stop(self) -> None:
        """The first time, pass it on; asked again, the shorter grace holds."""
        self.grace_s = self.asked_grace_s()
        if not self.killed:
            self.set_deadline(self.grace_s)
        if not self.stopped and self.failure is None:
            self.stopped = True
            self.signal(SIGTERM)

    def asked_grace_s(self) -> float:
        """The job's own where not the engine asks, but a machine that goes down, say."""
        try:
            asked = float(run_files.read_plain(STOP, RESERVED))
        except (OSError, ValueError):
            return self.grace_s
        return asked if 0 <= asked < 1e9 else self.grace_s

    def set_deadline(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self.deadline = until if self.deadline is None else min(self.deadline, until)

    def signal(self, number: int) -> None:
        for worker in self.living():
            os.kill(worker.pid, number)

    def kill(self) -> None:
        self.killed, self.deadline = True, None
        self.signal(SIGKILL)

    def reap(self) -> None:
        """Who has ended: workers, and orphans of theirs, which are handed to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                return
            if pid == 0:
                return
            for worker in self.living():  # an orphan may have the number of one that ended
                if worker.pid == pid:
                    self.ended(worker, os.waitstatus_to_exitcode(status))

    def ended(self, worker: Worker, code: int) -> None:
        worker.code = code
        fine = code == 0 or (self.stopped and code == worker.plan["code_when_stopped"])
        if fine or self.failure is not None:
            return
        who = f"worker {worker.plan['rank']}: " if len(self.workers) > 1 else ""
        self.failure = (code, who + run_files.described(code))
        if not self.stopped:  # the others cannot go on without it
            self.set_deadline(FAILED_GRACE_S)
            self.signal(SIGTERM)

    def winding_down(self) -> bool:
        """A stop ends a shell at once; what it had begun gets SIGTERM too, and the same grace."""
        if not self.stopped or self.killed or self.childless:
            return False
        left = run_marks.children(self.me)
        for pid in left - self.told:
            self.told.add(pid)
            attempt(os.kill, pid, SIGTERM)
        return bool(left)

    def clear(self) -> None:
        """Kill what is left, also what has left the process group; then take the last output."""
        if os.getpid() != self.me:
            return  # a worker on its way out of these frames
        end = time.monotonic() + LEFTOVERS_S
        self.reap()
        while not self.childless and (time.monotonic() < end or self.is_left()):
            for pid in run_marks.children(self.me):
                attempt(os.kill, pid, SIGKILL)
            if self.group > 0:
                attempt(os.kill, -self.group, SIGKILL)
            time.sleep(LOOK_S / 10 if time.monotonic() < end else LOOK_S)
            for worker in self.outputs.values():
                worker.copy()
            self.reap()
        end = time.monotonic() + LEFTOVERS_S
        for worker in self.outputs.values():
            while worker.copy() and time.monotonic() < end:
                pass
            worker.log.write(worker.mask.rest())

    def is_left(self) -> bool:
        """Whether what is left is to be waited for, and if so, say that it is."""
        if self.lasting and not self.stage.startswith(LEFT):
            attempt(self.advance, LEFT)
        return self.lasting

    def advance(self, stage: str) -> None:
        after = f"{stage}.{self.stage.partition('.')[2]}"
        os.rename(self.stage, after)
        self.stage = after

    def outcome(self) -> "tuple[int, bool, str, bool, bool]":
        self.heed()  # a stop that came while the last worker ended counts as one
        if self.overdue and self.stopped:
            late = f"killed: still running {self.grace_s:g} s after SIGTERM"
            return -SIGKILL, True, late, False, False
        if self.failure is not None:
            return self.failure[0], self.stopped, self.failure[1], False, False
        done = self.is_done()
        why = "done when asked to stop" if done else "stopped when asked"
        return 0, self.stopped, why if self.stopped else "", False, done


def prctl(option: int, value: int) -> None:
    run_marks.libc("prctl", option, value, 0, 0, 0)


def identity(pid: int) -> str:
    """A process beyond its number, which another may get: PID.TICKS.BOOT; empty if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state, *fields = file.read().rpartition(")")[2].split()
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().partition("-")[0]
    except OSError:
        return ""
    return "" if state in "ZX" else f"{pid}.{fields[18]}.{boot}"


def supervise(claimed: str, wake: int, kind: "type[Worker]", given: bytes) -> "tuple[Any, ...]":
    """The run, until it is over; gives how it ended, as `write_outcome` takes it. `given`: its
    secrets, as they came."""
    try:
        launch = run_files.unpacked(run_files.read_plain(claimed))
        if launch.get("needs") and not os.path.lexists(STOP):
            launch["secrets"] = run_files.unpacked(given)
    except (OSError, ValueError) as trouble:
        return None, False, f"lost: what it was to run is damaged: {trouble}", True
    supervisor = Supervisor(launch, wake, kind, claimed)
    if os.path.lexists(STOP):
        return 0, True, "stopped before it began"
    if supervisor.lasting:
        run_marks.wear(launch["mark"])
    try:
        if supervisor.start():
            supervisor.advance(UP)
            kind.are_up()
            if supervisor.checkpoints:
                _thread.start_new_thread(supervisor.watch, ())
            if launch.get("cgroup"):
                run_marks.gather(launch["cgroup"])
        supervisor.run()
    finally:
        supervisor.clear()
    if supervisor.checkpoints:
        supervisor.look()
    supervisor.over = True
    return supervisor.outcome()


def main(folder: str) -> None:
    os.closerange(3, 65536)  # nothing of the service's may live on in what outlives it
    given = run_files.read_all(0)
    os.dup2(1, 0)  # nothing
    look_after(folder, Worker, given)


def look_after(folder: str, kind: "type[Worker]", given: bytes = b"") -> None:
    os.chdir(folder)
    wake, signalled = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    _signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    for number in (SIGTERM, _signal.SIGCHLD):
        _signal.signal(number, lambda *_: None)
    claimed = f"{CLAIMED}.{identity(os.getpid())}"
    try:
        os.rename(LAUNCH, claimed)
    except FileNotFoundError:
        return  # another has it
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    outcome: tuple[Any, ...]
    try:
        outcome = supervise(claimed, wake, kind, given)
    except Exception as trouble:
        outcome = (None, False, f"lost: its supervisor failed: {trouble!r}")
    while os.path.exists(folder):
        try:
            run_files.write_outcome(folder, *outcome)
            return
        except OSError as trouble:  # disk full
            if trouble.errno in IN_THE_WAY:
                return
            time.sleep(RETRY_S)
