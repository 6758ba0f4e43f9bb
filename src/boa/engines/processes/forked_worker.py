"""A worker forked from a warm parent: how a copy of the parent becomes a script.

Whatever the script can see is as if Python had been started for it: signals, environment, folder,
arguments, module search path, standard streams, random numbers, exit code, shutdown. Modules are
there already, and `sys.flags` are the parent's (whose environment is that of the job).
"""

import atexit
import builtins
import ctypes
import gc
import os
import runpy
import signal
import sys
import threading
import time
import types
import weakref
from _io import _IOBase
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from typing import Any, NoReturn

THREADS = "OMP_NUM_THREADS"
STORE_S = 10.0
"""Seconds for the first rank to open its store, before torch waits for it in its own way."""
OURS = (
    "parent_process",
    "forked_worker",
    "shadowed_modules",
    "spare_workers",
    "run_supervisor",
    "run_files",
    "run_marks",
    "masking",
    "worker_user",
)
"""Modules of ours, under names that a script may have for its own."""
_OPENBLAS = tuple(
    f"{prefix}openblas_set_num_threads{suffix}"
    for prefix in ("scipy_", "")
    for suffix in ("64_", "")
)
_limit_openblas: list[Callable[[int], object]] = []


def prepare() -> None:
    """In the parent, once.

    Find how to tell NumPy's OpenBLAS how many threads it may have. And what imports want done when
    their objects go, no worker is to do at its end: torch would take all its operators apart.
    """
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[-1].rstrip("\n") for line in maps if "openblas" in line}
    for path in paths:
        library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        names = [name for name in _OPENBLAS if hasattr(library, name)]
        _limit_openblas.extend(getattr(library, name) for name in names[:1])


def go_on(plan: Mapping[str, Any], told: int, kept: set[int]) -> NoReturn:
    """Run the plan's script. Files that are not `kept` are closed; `told`, the last, says so."""
    for number in (signal.SIGTERM, signal.SIGCHLD):  # the supervisor's handlers
        signal.signal(number, signal.SIG_DFL)
    for fd in open_files() - kept - {told}:
        os.close(fd)
    threads = os.environ.get(THREADS)
    os.environ.update(plan["env"])
    if os.environ.get(THREADS) != threads:
        _limit_threads(os.environ[THREADS])
    _be_another()
    _wait_for_rank_0()
    words: list[str] = plan["script"]
    sys.orig_argv = [sys.executable, *words]
    for name in OURS:
        sys.modules.pop(name, None)
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules["__main__"].__dict__.update(__builtins__=builtins, __annotations__={})
    os.close(told)
    if words[0] == "-m":
        code = _ended(lambda: _module(words[1], words[2:]))
    else:
        code = _ended(lambda: _script(words))
    _finish(code)


def open_files() -> set[int]:
    found = set()
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            os.fstat(fd)
        except OSError:  # what it was listed by
            continue
        found.add(fd)
    return found


def _limit_threads(wanted: str) -> None:
    """As libraries do that read the variable when they are loaded; those were loaded before."""
    if not wanted.isdigit() or int(wanted) < 1:
        return
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(int(wanted))
    for limit in _limit_openblas:
        limit(int(wanted))


def _be_another() -> None:
    """Make anew whatever a process makes up when it begins: it must not be the same in all
    forks."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()  # `random` does this by itself
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        vars(process)["ORIGINAL_DIR"] = os.getcwd()  # what relative paths are relative to
        process.current_process().authkey = os.urandom(32)


def _wait_for_rank_0() -> None:
    """Have others connect to its store when that listens.

    Forked ranks are so close together that it often does not yet, and torch tries again only half
    a second later.
    """
    rendezvous: Any = sys.modules.get("torch.distributed.rendezvous")
    create = getattr(rendezvous, "_create_c10d_store", None)
    if create is None or os.environ.get("RANK", "0") == "0":
        return

    def create_later(*arguments: Any, **options: Any) -> Any:
        until = time.monotonic() + STORE_S
        port = os.environ.get("MASTER_PORT", "")
        while port.isdigit() and not _listened_to(int(port)) and time.monotonic() < until:
            time.sleep(0.002)
        return create(*arguments, **options)

    rendezvous._create_c10d_store = create_later


def _listened_to(port: int) -> bool:
    """On this machine, which is where rank 0 of a run of the local engine is."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError), open(table) as sockets:
            for line in sockets:
                _, local, _, state, *_ = line.split(maxsplit=4)
                if state == "0A" and local.endswith(f":{port:04X}"):
                    return True
    return False


def _script(words: Sequence[str]) -> None:
    path = os.path.join(os.getcwd(), words[0])
    sys.argv = list(words)
    _search_first(os.path.dirname(os.path.realpath(path)))
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as trouble:
        said = f"[Errno {trouble.errno}] {trouble.strerror}"
        print(f"{sys.executable}: can't open file {path!r}: {said}", file=sys.stderr)
        sys.exit(2)
    names = sys.modules["__main__"].__dict__
    names.update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    exec(compile(source, path, "exec", dont_inherit=True), names)


def _module(name: str, arguments: Sequence[str]) -> None:
    sys.argv = ["-m", *arguments]
    _search_first(os.getcwd())
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]  # what `python -m` calls


def _search_first(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)


def _ended(run: Callable[[], None]) -> int:
    """With which code; a signal n is -n. What Python would print, it prints."""
    try:
        run()
    except SystemExit as asked:
        if asked.code is None or isinstance(asked.code, int):
            return (asked.code or 0) & 0xFF
        print(asked.code, file=sys.stderr)
    except BaseException as trouble:
        frames = trouble.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
            frames = frames.tb_next  # our own are not shown
        sys.excepthook(type(trouble), trouble.with_traceback(frames), frames)
        if isinstance(trouble, KeyboardInterrupt):
            return -signal.SIGINT
    else:
        return 0
    return 1


def _finish(code: int) -> NoReturn:
    """The end of a Python process, as far as a script can tell.

    Only what was there before it is not taken apart: with torch that takes longer than all else.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # wait for its threads
    with suppress(BaseException):  # was printed
        atexit._run_exitfuncs()
    _flush()  # first: a collection may close a file before the buffer above it is written
    del sys.modules["__main__"]
    gc.collect()  # what only the script knew of: its finalisers run
    _flush()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _flush() -> None:
    for thing in gc.get_objects():
        # not isinstance: a dead weak reference, say, fails when it is asked for its class
        if issubclass(type(thing), _IOBase):
            with suppress(Exception):
                thing.flush()
    ctypes.CDLL(None).fflush(None)
