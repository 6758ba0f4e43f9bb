"""Scripts forked from a warm parent see, stop and end as if Python had been started for them."""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_runs import alive, until
from warm_runs import WARM, Scripts

BOTH = pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Scripts]:
    runs = Scripts(tmp_path)
    yield runs
    runs.close()


# What they see

SEEN = """
    import json, multiprocessing.process, os, resource, signal, sys, threading
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(json.dumps({
        "argv": [sys.argv, sys.orig_argv[1:], sys.executable],
        "path": sys.path,
        "main": [__name__, __file__, getattr(__spec__, "name", None), __package__, __doc__],
        "names": sorted(globals()),
        "is main": sys.modules["__main__"].__dict__ is globals(),
        "environment": {k: v for k, v in os.environ.items()},
        "folder": [os.getcwd(), multiprocessing.process.ORIGINAL_DIR],
        "signals": {k: status[k] for k in ("SigBlk", "SigIgn", "SigCgt")},
        "handlers": [str(signal.getsignal(n)) for n in (signal.SIGTERM, signal.SIGCHLD)],
        "files": [fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/dev/fd/{fd}")],
        "input": sys.stdin.read(),
        "output": [sys.stdout.encoding, sys.stdout.line_buffering, sys.stdout.write_through,
                   sys.stdout.errors, sys.stderr.errors],
        "limits": resource.getrlimit(resource.RLIMIT_NOFILE),
        "umask": os.umask(0),
        "flags": repr(sys.flags),
        "thread": [threading.current_thread().name, threading.active_count()],
        "session": os.getsid(0) == os.getppid(),
        "group": os.getpgid(0) == os.getpid(),
        "ours": [name for name in ("run_supervisor", "parent_process", "forked_worker",
                                   "shadowed_modules") if name in sys.modules],
    }))
"""
DIFFERENT = ("BOA_JOB_ID", "BOA_CHECKPOINT_DIR", "BOA_DONE", "BOA_KEEPER", "MASTER_PORT")


@pytest.mark.parametrize("launcher", ["workers", "single"])
@pytest.mark.parametrize("words", [("script.py",), ("-m", "script"), ("./script.py",)])
def test_a_warm_script_sees_what_a_cold_one_sees(
    runs: Scripts, words: tuple[str, ...], launcher: str
) -> None:
    runs.script(SEEN)
    runs.module("import multiprocessing, threading, logging, random")
    cold, warm = (
        json.loads(log)
        for _, log in runs.both(
            sys.executable, *words, "--lr", "0.1 x", env={"MINE": "1"}, launcher=launcher
        )
    )
    for seen in (cold, warm):
        for name in DIFFERENT:
            del seen["environment"][name]
    assert warm == cold
    assert warm["argv"][0][1:] == ["--lr", "0.1 x"]


def test_a_script_is_forked_from_a_parent_that_has_imported(runs: Scripts) -> None:
    runs.module("import os\nwho = os.getpid()")
    keys = [
        runs.run(
            f"{WARM}import preloaded, sys; print(warm, preloaded.who)", attempt=n, slots=((0, 1),)
        )
        for n in (1, 2)
    ]
    assert [runs.end(key).exit_code for key in keys] == [0, 0]
    (parent,) = runs.parents
    assert {runs.log(key, rank) for key in keys for rank in (0, 1)} == {f"True {parent}\n"}


def test_a_string_without_shell_syntax_is_forked_as_its_words_are(runs: Scripts) -> None:
    runs.script(f"{WARM}import sys; print(warm, sys.argv[1:])")
    plain = runs.command("sh", "-c", f"{sys.executable} script.py --lr=0.1 a")
    shell = runs.command("sh", "-c", f"{sys.executable} script.py --lr=0.1 $((1+1))", attempt=2)
    assert [runs.end(key).exit_code for key in (plain, shell)] == [0, 0]
    assert runs.log(plain) == "True ['--lr=0.1', 'a']\n"
    assert runs.log(shell) == "False ['--lr=0.1', '2']\n"


def test_random_numbers_are_not_those_of_another_rank_or_run(runs: Scripts) -> None:
    runs.module("import random, numpy.random, multiprocessing, uuid")
    draw = (
        "import random, numpy as np, multiprocessing as mp\n"
        "print(random.random(), np.random.rand(), bytes(mp.current_process().authkey).hex())"
    )
    keys = [runs.run(draw, attempt=n, slots=((0, 1),)) for n in (1, 2)]
    assert [runs.end(key).exit_code for key in keys] == [0, 0]
    drawn = [runs.log(key, rank).split() for key in keys for rank in (0, 1)]
    assert [len(set(column)) for column in zip(*drawn, strict=True)] == [4, 4, 4]


def test_processes_that_a_script_begins_find_its_functions(runs: Scripts) -> None:
    runs.module("import multiprocessing")
    text = """
        import multiprocessing as mp
        def double(x): return 2 * x
        if __name__ == "__main__":
            for kind in ("spawn", "fork"):
                with mp.get_context(kind).Pool(2) as pool:
                    print(kind, pool.map(double, [1, 2, 3]))
    """
    key = runs.run(text)
    assert runs.end(key).exit_code == 0, runs.log(key)
    assert runs.log(key) == "spawn [2, 4, 6]\nfork [2, 4, 6]\n"


@BOTH
def test_ranks_share_the_cores_unless_somebody_says_otherwise(
    runs: Scripts, warm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    show = "import os; print(os.environ.get('OMP_NUM_THREADS'))"
    keys = [
        runs.run(show, warm=warm, job="1"),
        runs.run(show, warm=warm, job="2", slots=((0,), (0,))),
        runs.run(show, warm=warm, job="3", slots=((0, 1),), env={"OMP_NUM_THREADS": "3"}),
    ]
    assert [(runs.end(key).exit_code, runs.log(key)) for key in keys] == [
        (0, "None\n"),
        (0, "1\n"),
        (0, "3\n"),
    ]


# How they end

ENDS = {
    "done": "print('done')",
    "code": "import sys; sys.exit(3)",
    "code below 0": "import sys; sys.exit(-1)",
    "words": "import sys; sys.exit('it is broken')",
    "exception": "def f():\n    raise ValueError('no')\ntry:\n    1 / 0\nfinally:\n    f()",
    "its own hook": "import sys; sys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0",
    "syntax": "print('no'\n",
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "at once": "import os; print('x'); os._exit(5)",
    "its thread": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\nprint('main')",
    "its files": "import atexit, os\nfile = open('written' + os.environ['BOA_JOB_ID'], 'w')\n"
    "file.write('text')\n"
    "atexit.register(lambda: print('at exit', bool(file)))\n"
    "class Last:\n    def __del__(self): print('last', Last.__name__)\nlast = Last()\n",
    "a failing end": "import atexit\natexit.register(lambda: 1 / 0)",
    "no module": "import no_such_module",
}


@pytest.mark.parametrize("text", ENDS.values(), ids=ENDS.keys())
def test_a_warm_script_ends_as_a_cold_one_does(runs: Scripts, text: str) -> None:
    runs.script(text)
    ends = runs.both(sys.executable, "script.py")
    cold, warm = ((end.exit_code, end.reason, re.sub("0x[0-9a-f]+", "", log)) for end, log in ends)
    assert warm == cold
    assert {path.read_text() for path in runs.code.glob("written*")} <= {"text"}


@pytest.mark.parametrize("words", [("-m", "no_such_module"), ("-m", "package")])
def test_a_module_that_cannot_be_run_is_told_of_alike(
    runs: Scripts, words: tuple[str, ...]
) -> None:
    (runs.code / "package").mkdir()
    (cold, cold_log), (warm, warm_log) = runs.both(sys.executable, *words)
    assert (warm.exit_code, warm_log) == (cold.exit_code, cold_log)
    assert warm.exit_code == 1


@BOTH
def test_the_first_worker_that_fails_gives_the_exit_code_and_the_others_are_told(
    runs: Scripts, warm: bool
) -> None:
    text = """
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: (print("told"), sys.exit(0)))
        os.chdir(os.environ["BOA_CHECKPOINT_DIR"])
        if os.environ["RANK"] == "1":
            while not (os.path.exists("0") and os.path.exists("2")): time.sleep(0.005)
            sys.exit(3)
        open(os.environ["RANK"], "w").close()
        while True: signal.pause()
    """
    key = runs.run(text, warm=warm, slots=((0, 1, 2),))
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (3, False, "worker 1: exit code 3")
    assert runs.log(key, 0) == runs.log(key, 2) == "told\n"


@BOTH
def test_nothing_that_a_worker_began_outlives_its_run(runs: Scripts, warm: bool) -> None:
    text = """
        import os, subprocess, time
        pids = [subprocess.Popen(["sleep", "1000"], start_new_session=new).pid for new in (0, 1)]
        if not (pid := os.fork()):
            os.setsid()
            time.sleep(1000)
        print(*pids, pid)
    """
    key = runs.run(text, warm=warm)
    assert runs.end(key).exit_code == 0
    pids = [int(pid) for pid in runs.log(key).split()]
    assert len(pids) == 3
    until(lambda: not any(map(alive, pids)))


# How they stop

SAVES = """
    import os, signal, sys
    signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"saved\\n"), sys.exit(0)))
    print("ready")
    while True: signal.pause()
"""
"""It may be printing when the signal comes, and nothing prints while it prints."""
IGNORES = SAVES.replace('(os.write(1, b"saved\\n"), sys.exit(0))', "None")


@BOTH
def test_a_stop_reaches_every_worker_once(runs: Scripts, warm: bool) -> None:
    key = runs.run(SAVES, warm=warm, slots=((0, 1),))
    for rank in (0, 1):
        runs.until_printed(key, "ready", rank)
    for _ in range(3):
        runs.engine.stop(key, 120.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (0, True, "stopped when asked")
    assert runs.log(key, 0) == runs.log(key, 1) == "ready\nsaved\n"


@BOTH
def test_a_script_that_ignores_sigterm_is_killed_after_its_grace(runs: Scripts, warm: bool) -> None:
    key = runs.run(IGNORES, warm=warm)
    runs.until_printed(key, "ready")
    asked = time.monotonic()
    for grace_s in (600.0, 0.3, 600.0):
        runs.engine.stop(key, grace_s)
    end = runs.end(key)
    assert time.monotonic() - asked >= 0.3
    assert (end.exit_code, end.stopped) == (-9, True)
    assert end.reason == "killed: still running 0.3 s after SIGTERM"


@BOTH
def test_without_a_handler_sigterm_ends_it(runs: Scripts, warm: bool) -> None:
    key = runs.run("print('ready')\nimport signal; signal.pause()", warm=warm)
    runs.until_printed(key, "ready")
    runs.engine.stop(key, 120.0)
    end = runs.end(key)
    assert (end.exit_code, end.stopped, end.reason) == (-15, True, "killed by SIGTERM")


def test_what_a_warm_run_prints_can_be_read_while_it_runs_and_stays_within_its_limit(
    tmp_path: Path,
) -> None:
    runs = Scripts(tmp_path, log_bytes=8192)
    key = runs.run(
        "for n in range(20_000): print('line', n)\nprint('end')\nimport signal; signal.pause()"
    )
    runs.until_printed(key, "end\n")
    assert sum(file.path.stat().st_size for file in runs.engine.logs("1")) <= 8192
    assert os.path.exists(runs.folder(key) / "0.old.log")
    runs.close()
