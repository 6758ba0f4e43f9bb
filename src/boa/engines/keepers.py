"""Keepers (`boa.train.keeper`) of jobs that run on this machine: who begins them.

A job whose state is worth it asks for one by a file in a folder of its own. A keeper goes on when
its engine dies, as runs do: it may hold state that is on no disk yet. It is known by a lock in that
folder, ends by itself when nobody needs it, and is the user that the job runs as: what it starts to
write the state to the disk is a command of the job's.
"""

import json
import logging
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress

from boa.engines import users
from boa.engines.processes import keeper_beginning, orphans
from boa.engines.processes.beginning import begun
from boa.private_files import private_file, private_folder
from boa.train.keeper import process
from boa.train.keeper.process import BEFORE, SHARE, WANTED

BEGIN = (
    "import sys; sys.path.append(sys.argv[1]); "
    "import keeper_beginning; keeper_beginning.main(*sys.argv[2:])"
)
_log = logging.getLogger("boa.engines")


class Keepers:
    def __init__(
        self,
        ledger: str,
        python: str,
        share: float,
        env: Mapping[str, str],
        *,
        host: str = "",
        node: str = "",
        alone: bool = False,
    ) -> None:
        """`share`: of this machine's memory, for all of them together; 0: there are none. `ledger`:
        the folder where they write down what they hold. `env`: what they and their writers see.
        `host`: where other nodes reach them; `node`: their node, as the engine knows it. `alone`:
        they are no children of ours, which would end with us."""
        self._ledger, self._python, self._share, self._env = ledger, python, share, dict(env)
        self._more = ["--host", host, "--node", node]
        self._alone = alone
        self._ours: list[int] = []

    def offer(self, folder: str, user: users.User | None = None) -> bool:
        """Whether the job may ask for one in that folder, which is the user's (None: ours) from
        now on."""
        if self._share <= 0:
            return False
        try:
            private_folder(self._ledger)
            if user is None:
                private_folder(folder)
            else:
                users.passable(self._ledger)
                users.own(self._ledger_of(user.uid), user)
                users.own(folder, user)
        except OSError as trouble:
            _log.warning("no state stays in memory in %s: %s", folder, trouble)
            return False
        return True

    def look(self, folder: str) -> None:
        """Whether a job has asked for one in its folder; then there is one soon."""
        wanted = os.path.join(folder, WANTED)
        if self._share <= 0 or not os.path.lexists(wanted):
            return
        try:
            os.unlink(wanted)  # or there would be another with every look
            self._ours.append(self._spawned(folder))
        except (OSError, users.NoSuchUser) as trouble:
            _log.warning("no keeper in %s: %s", folder, trouble)

    def tend(self) -> None:
        """Those that have ended are no longer processes."""
        self._ours = [pid for pid in self._ours if not orphans.reaped(pid)]

    def _spawned(self, folder: str) -> int:
        """Should there be one already, it ends at once. Whose folder it is, it is: nobody but us
        could have put another in its place."""
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(folder)
        user = None if found.st_uid == os.geteuid() else users.find(str(found.st_uid))
        ledger = self._ledger if user is None else self._ledger_of(user.uid)
        env = self._env if user is None else {**self._env, **user.env}
        how = {"alone": self._alone, "user": None if user is None else users.told(user)}
        beside = os.path.dirname(keeper_beginning.__file__)
        code = os.path.dirname(process.__file__)
        words = [folder, "--ledger", ledger, "--share", str(self._share), *self._more]
        begin = [self._python, "-I", "-S", "-c", BEGIN, beside, code, json.dumps(how)]
        return begun([*begin, *words], env)

    def _ledger_of(self, uid: int) -> str:
        """Each user has one: who could lock another's could hold that one's keepers up."""
        return os.path.join(self._ledger, str(uid))


def enclose(folder: str, before: Sequence[str], user: users.User | None = None) -> bool:
    """Have commands of the job's run behind these words, as a container's are; none: as they are.
    The folder may be another's: what is there is followed nowhere. False: it could not be done, and
    there is to be no keeper."""
    path = os.path.join(folder, BEFORE)
    try:
        with suppress(FileNotFoundError):
            os.unlink(path)
        if before:
            owner = None if user is None else (user.uid, user.gid)
            private_file(path, json.dumps(list(before)).encode(), owner=owner)
    except OSError as trouble:
        _log.warning("no state stays in memory in %s: %s", folder, trouble)
        return False
    return True


__all__ = ["SHARE", "Keepers", "enclose"]
