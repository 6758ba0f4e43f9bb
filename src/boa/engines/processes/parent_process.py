"""A warm parent: a process in the user's Python that has imported what takes long, and forks.

The engine begins it (`parent_pool.py`) with a socket as its standard input, one message each way:

engine to parent    the folder of a run, and after a NUL the job's secrets, if it has some;
                    a NUL and a folder: have spares for a run that will be in it (`spare_workers`)
parent to engine    JSON: {"ready": {...}} once; {"gone": FOLDER} when that run's supervisor is no
                    more, whether or not it took the run; {"failed": WHY}, the last one

For every folder it forks a supervisor: `run_supervisor.py` as ever, except that its workers,
instead of executing Python, go on as the script in the process that was forked, with all modules
there. Where a new process would import another module than one of these, they execute it after all.

The parent ends when the socket closes, or, while it does not listen, by a signal when the thread
that began it is no more. So it never outlives the service; supervisors do.

It must stay clean, or what is forked from it may hang or fail: one thread, no CUDA. Where it is
not, it says so and ends, and the engine starts runs as if there were no parent.
It needs nothing but the standard library, and no more of the package than
`run_supervisor.py` beside it.
"""

import gc
import importlib
import json
import os
import select
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from boa.engines.processes import (
        forked_worker,
        run_marks,
        run_supervisor,
        shadowed_modules,
        spare_workers,
    )
else:
    import forked_worker
    import run_marks
    import run_supervisor
    import shadowed_modules
    import spare_workers

MESSAGE_BYTES, WHY_BYTES = 1024**2, 1000
MOST_WATCHED = 500
LATER = {
    "torch": (
        "torch._dynamo",  # of every optimiser
        "torch.distributed",
        "torch.distributed.checkpoint",
        "torch.nn.parallel.distributed",
        "torch.utils.data",
        "torch.utils.serialization.config",  # of torch.save
    )
}
"""Modules that others import only when they are used: worth having before that."""


class Dirty(Exception):
    """Nothing can be forked from this process; says why."""


class Forked(run_supervisor.Worker):
    """A worker that goes on as a Python script, without starting Python again."""

    environ: Mapping[str, str] = {}
    """Before anything was imported, which may have changed it."""
    imports = shadowed_modules.Imports()
    spares = spare_workers.Spares()

    def start(self, workdir: str, group: int) -> int:
        begun = self.spares.start(self, workdir, group)
        return super().start(workdir, group) if begun is None else begun

    @classmethod
    def are_up(cls) -> None:
        cls.spares.end()

    def execute(self, told: int) -> NoReturn:
        other = self.imports.other(shadowed_modules.first_place(self.plan["script"]))
        if not other:
            raise run_supervisor.Reborn(self.plan, told)
        print(f"[boa] no warm start: {other} is not what was imported before", flush=True)
        for fd in forked_worker.open_files() - {0, 1, 2, told} - run_marks.kept:
            os.close(fd)
        os.environ.clear()
        os.environ.update(self.environ)
        super().execute(told)


def main(service: int, known: Collection[str], modules: Sequence[str]) -> NoReturn:
    """`known`: what Python itself had imported; `modules`: names to import."""
    run_supervisor.prctl(run_supervisor.PR_SET_PDEATHSIG, run_supervisor.SIGKILL)
    if os.getppid() != service:  # it was killed before it could take us along
        os._exit(0)
    os.environ.pop("BOA_WARM", None)  # a mark in /proc, see `leftovers`; not for jobs
    Forked.environ = dict(os.environ)
    os.closerange(3, 65536)
    control = socket.socket(fileno=os.dup(0))
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    try:
        with shadowed_modules.missed() as missed:
            import_all(modules)
        Forked.imports = shadowed_modules.Imports(known, missed, forked_worker.OURS)
        check_clean()
        forked_worker.prepare()
        kept = forked_worker.open_files() - {control.fileno()}
        say(control, ready=watched(modules))
        serve(control)
    except run_supervisor.Reborn as worker:
        plan, told = worker.args
    except ConnectionError:  # the service is no more
        os._exit(0)
    except BaseException as trouble:
        why = str(trouble) if isinstance(trouble, Dirty) else f"{type(trouble).__name__}: {trouble}"
        say(control, failed=why[:WHY_BYTES])
        os._exit(1)
    # outside of the handler, or all the script's exceptions would have this one as their context
    forked_worker.go_on(plan, told, kept | run_marks.kept)


def import_all(modules: Sequence[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    for later in [later for name in LATER if name in sys.modules for later in LATER[name]]:
        try:
            importlib.import_module(later)
        except Exception:  # only quicker with it
            continue
    gc.collect()
    gc.freeze()  # or the first collection of every process would copy all these pages


def check_clean() -> None:
    pid = os.fork()  # some libraries end their threads before a fork, and begin them when used
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    check_alone()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise Dirty("importing has initialised CUDA, which forked processes cannot use")
    for fd in forked_worker.open_files():
        if os.readlink(f"/proc/self/fd/{fd}").startswith("/dev/nvidia"):
            raise Dirty("importing has opened a GPU, which forked processes cannot use")


def check_alone() -> None:
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise Dirty(f"imports have begun {threads - 1} threads, which forked processes do not have")


def watched(modules: Sequence[str]) -> dict[str, Any]:
    """Files that must stay as they are, or a new process would import something else.

    All modules that may be edited in place, the packages asked for, and the folders that packages
    are installed in: an installer changes these, whatever it installs.
    """
    installed = tuple(os.path.join(place, "") for place in (sys.prefix, sys.base_prefix))
    asked = {".".join(n.split(".")[:k]) for n in modules for k in range(1, n.count(".") + 2)}
    files = {sys.executable, *(p for p in sys.path if p.endswith("-packages"))}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if path and name in asked:
            files |= {path, os.path.dirname(path)}
        elif path and not path.startswith(installed) and len(files) < MOST_WATCHED:
            files.add(path)
    with open("/proc/self/status") as status:
        sizes = dict(line.split(":", 1) for line in status)
    stamps = {path: os.stat(path).st_mtime_ns for path in files if os.path.exists(path)}
    return {"files": stamps, "memory_kb": int(sizes["VmRSS"].split()[0])}


def say(control: socket.socket, **message: Any) -> None:
    control.send(json.dumps(message).encode())


def serve(control: socket.socket) -> NoReturn:
    """Until the socket closes; out by `Reborn` in a forked worker."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    supervisors: dict[int, Supervisor] = {}
    while True:
        for fd, _ in poller.poll():
            if fd in supervisors:
                poller.unregister(fd)
                os.close(fd)
                over = supervisors.pop(fd)
                os.waitpid(over.pid, 0)
                over.close()
                say(control, gone=over.folder)
                continue
            message = control.recv(MESSAGE_BYTES)
            if not message:
                raise ConnectionError
            check_alone()
            if not any(each.ask(message) for each in supervisors.values()):
                begun = fork(message, control, supervisors)
                handle = os.pidfd_open(begun.pid)
                supervisors[handle] = begun
                poller.register(handle, select.POLLIN)
            del message  # nothing of one run's for the next


class Supervisor:
    """One that was forked, as the parent knows it."""

    def __init__(self, pid: int, folder: str, line: socket.socket | None) -> None:
        """`line`: how it is told of its run, if it waits for one."""
        self.pid, self.folder, self.line = pid, folder, line
        self._number = _number(folder)

    def ask(self, message: bytes) -> bool:
        """Whether it has waited for this run: it is in the folder that became the run's."""
        folder = message.partition(b"\0")[0].decode()
        if self.line is None or not folder or self._number != _number(folder):
            return False
        try:
            self.line.send(message)
        except OSError:  # it ends
            return False
        finally:
            self.close()
        self.folder = folder
        return True

    def close(self) -> None:
        if self.line is not None:
            self.line.close()
        self.line = None


def _number(folder: str) -> int | None:
    """Stays the same when it is moved."""
    try:
        return os.stat(folder).st_ino
    except OSError:
        return None


def fork(message: bytes, control: socket.socket, others: Mapping[int, Supervisor]) -> Supervisor:
    """A supervisor for that run, in a session of its own. What imports opened stays open in it."""
    place, _, given = message.partition(b"\0")
    line, asked = (None, None) if place else socket.socketpair(type=socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid:
        if asked is not None:
            asked.close()
        return Supervisor(pid, (place or given).decode(), line)
    try:
        os.setsid()
        for mine in (control, line, *(each.line for each in others.values())):
            if mine is not None:
                os.close(mine.detach())
        for fd in others:
            os.close(fd)
        if asked is not None:
            place, given = _expect(given.decode(), asked)
        run_supervisor.look_after(place.decode(), Forked, given)
    except run_supervisor.Reborn:
        raise
    except BaseException:
        os._exit(1)
    os._exit(0)


def _expect(folder: str, asked: socket.socket) -> tuple[bytes, bytes]:
    """With spares, wait for the run that will be there: gives what a supervisor is told."""
    os.chdir(folder)
    Forked.spares.fork(Forked)
    message = Forked.spares.until_asked(asked)
    asked.close()
    if not message:
        os._exit(0)  # and they with it
    place, _, given = message.partition(b"\0")
    return place, given
