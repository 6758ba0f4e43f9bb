"""A process that is closed to others of its own user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
import os, sys
from boa.own_process import close_to_others
os.environ.pop("BOA_TOKEN")
close_to_others(lambda name: name == "SHOWN")
print(os.getpid(), os.environ["PGPASSWORD"], os.getenv("SHOWN"), flush=True)
import ctypes
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(getenv(b"PGPASSWORD").decode(), getenv(b"BOA_TOKEN"), flush=True)
sys.stdin.read()
"""
AS_NOBODY = """
import ctypes, os
NOBODY = 65534
os.setgroups([]); os.setresgid(NOBODY, NOBODY, NOBODY); os.setresuid(NOBODY, NOBODY, NOBODY)
from boa.own_process import PR_SET_DUMPABLE, close_to_others
prctl = ctypes.CDLL(None).prctl

def looked():
    if (pid := os.fork()) == 0:  # as dumpable as any program
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        try:
            open(f"/proc/{os.getppid()}/environ", "rb").read()
            open(f"/proc/{os.getppid()}/mem", "rb")
            os.listdir(f"/proc/{os.getppid()}/fd")
        except PermissionError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
print(looked())
close_to_others(lambda name: True)
print(looked())
"""


def test_what_it_was_started_with_is_no_longer_to_be_read_but_by_itself() -> None:
    env = {**os.environ, "BOA_TOKEN": "t0ken", "PGPASSWORD": "pa55", "SHOWN": "seen"}
    with subprocess.Popen(
        [sys.executable, "-c", ASK],
        env=env,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        pid, password, shown = process.stdout.readline().split()
        assert (password, shown) == ("pa55", "seen")
        assert process.stdout.readline().split() == ["pa55", "None"], "libraries see the same"
        if os.geteuid() == 0:  # to others it is closed altogether
            left = Path(f"/proc/{pid}/environ").read_bytes()
            assert b"SHOWN=seen" in left
            assert b"t0ken" not in left
            assert b"pa55" not in left
        else:
            with pytest.raises(PermissionError):
                Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root can")
def test_another_process_of_the_same_user_can_no_longer_look_into_it() -> None:
    said = subprocess.run(
        [sys.executable, "-c", f"import boa.own_process, subprocess{AS_NOBODY}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["True", "False"]
