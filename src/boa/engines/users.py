"""Users that jobs of the local engine run as (`run_as`): who they are, and what they may enter.

The service is root then, and so are the supervisors of runs: a job can neither signal them nor
write into the folder of its run. What is the job's own is its folder `work` and its checkpoints.
The folders above those let everybody pass, and nobody else look into them.
"""

import os
import pwd
import stat
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boa.errors import InputError
from boa.private_files import private_folder

if TYPE_CHECKING:  # or every rank on a Ray node would import all that a service is told
    from boa.model.service import RunAs

ROOT = "root"
PASS = 0o011
"""Others may go through a folder, not list it."""
OWN_PLACES = ("TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME")
"""Variables that name folders of the service's user."""
_EXPECTED = "an existing user of this machine, by name or number"
_PROBE = (
    'cd -- "$1" || exit 3; '
    'while read -r key value; do [ "$key" = CapEff: ] && echo "$value"; done </proc/self/status; '
    "exit 0"
)
"""Asked as a user: whether the folder can be entered, and which privileges are left there."""


class NoSuchUser(Exception):
    """A user whom jobs are to run as is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    @property
    def env(self) -> dict[str, str]:
        named = {"USER": self.name, "LOGNAME": self.name}
        return {"HOME": self.home, **named, "SHELL": self.shell or "/bin/sh"}


def find(name: str) -> User:
    """By name, or else by number."""
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        try:
            found = pwd.getpwuid(int(name))
        except (KeyError, ValueError, OverflowError):
            raise NoSuchUser(f"there is no user {name} on this machine") from None
    return User(
        name=found.pw_name,
        uid=found.pw_uid,
        gid=found.pw_gid,
        groups=tuple(os.getgrouplist(found.pw_name, found.pw_gid)),
        home=found.pw_dir,
        shell=found.pw_shell,
    )


def told(user: User, folders: Sequence[str] = ()) -> dict[str, object]:
    """As processes read it that turn into the user: see `worker_user.py`."""
    return {
        "name": user.name,
        "uid": user.uid,
        "gid": user.gid,
        "groups": list(user.groups),
        "folders": list(folders),
    }


def name_of(uid: int) -> str:
    """The user's name, or else the number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def check(run_as: "RunAs") -> None:
    """That we can be them: before anything is begun."""
    for field, name in _named(run_as):
        if os.geteuid() != 0:
            expected = "nothing, or boa serve started by root: no one else can run jobs as others"
            raise InputError(field, name, expected, f"got {name!r}, but this service is not root's")
        try:
            user = find(name)
        except NoSuchUser:
            raise InputError(field, name, _EXPECTED) from None
        if user.uid == 0 and name != ROOT:
            raise InputError(
                field, name, f"{_EXPECTED}; {ROOT} only by that name", f"{name!r} is root"
            )


def check_reach(run_as: "RunAs", folder: Path) -> None:
    """That they can get to their own folders below that one, and have no privileges left."""
    for field, name in _named(run_as):
        user = find(name)
        if user.uid == 0:
            continue
        try:
            left = _probe(user, folder)
        except (OSError, subprocess.SubprocessError) as trouble:
            raise InputError(field, name, _EXPECTED, f"we cannot be {name!r}: {trouble}") from None
        if left is None:
            expected = "a folder that others may pass through, such as /var/lib/boa"
            problem = f"user {name} cannot get there, and jobs are to run as {name} (run_as)"
            raise InputError("--data", str(folder), expected, problem)
        if left.strip("0\n"):
            expected = "a service without ambient capabilities, or jobs would have them too"
            raise InputError(
                field, name, expected, f"{name!r} would keep the capabilities {left.strip()}"
            )


def _probe(user: User, folder: Path) -> str | None:
    """Its capabilities, in hexadecimal; None: it does not get to that folder."""
    done = subprocess.run(
        ["/bin/sh", "-c", _PROBE, "sh", str(folder)],
        user=user.uid,
        group=user.gid,
        extra_groups=list(user.groups),
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return None if done.returncode else done.stdout


def _named(run_as: "RunAs") -> Iterator[tuple[str, str]]:
    yield ("run_as.default" if run_as.teams else "run_as"), run_as.default
    for team, name in run_as.teams.items():
        yield f"run_as.teams.{team}", name


def passable(folder: str | Path) -> None:
    """A folder of ours that others may go through."""
    private_folder(folder)
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    if mode & PASS != PASS:
        os.chmod(folder, mode | PASS)


def own(folder: str | Path, user: User) -> None:
    """A folder of the user's, for nobody else; what is above it is ours, so that no link can be
    put in its place."""
    private_folder(folder)
    found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(found).st_uid != user.uid:
            os.fchown(found, user.uid, user.gid)
    finally:
        os.close(found)
