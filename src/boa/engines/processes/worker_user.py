"""Turning into the user whom a job runs as. Runs without the rest of the package, as does the
supervisor, whose forked workers do this; it stays who it is."""

import os
import warnings  # noqa: F401  # else `os.execvpe` does, when it may be out of the user's reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
if TYPE_CHECKING or __package__:
    from boa.engines.processes.run_files import attempt
else:
    from run_files import attempt


def become(user: "dict[str, Any]") -> None:
    """Be somebody else for good, with files for nobody else. Folders that the job names itself are
    made as who it is, where that may make them."""
    os.setgroups(user["groups"])
    os.setresgid(user["gid"], user["gid"], user["gid"])
    os.setresuid(user["uid"], user["uid"], user["uid"])
    os.umask(0o077)
    for folder in user["folders"]:
        attempt(os.makedirs, folder, 0o700)  # what is wrong with it, the job says
