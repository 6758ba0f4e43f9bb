"""The supervisor of one rank: `run_supervisor.py`, but it ends with the actor that began it.

Ray may kill the actor, or the whole node; it knows nothing of what the actor began. So the actor
holds the other ends of two pipes. Through stdin it says how many seconds of grace a stop has; that
it closes means that the actor is gone, and is a stop without grace. The worker's output goes to
stdout. Like it, this runs without the rest of the package, and replaces a file by itself.
"""

import _thread
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from boa.engines.processes import run_files, run_supervisor
else:
    import run_files
    import run_supervisor

alone = False
"""The actor is gone: nobody will read how it ended."""


class Output:
    """Takes the place of a log file."""

    def write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(1, data) :]
        except OSError:
            return  # the actor is gone, and soon so are we


class RankWorker(run_supervisor.Worker):
    def __init__(self, plan: "dict[str, Any]", log_bytes: int) -> None:
        self.plan, self.log = plan, Output()  # type: ignore[assignment]
        self.pid = self.output = 0
        self.code: int | None = None
        _thread.start_new_thread(obey, ())  # now: a signal before this would have killed us


def obey() -> None:
    global alone
    while not alone:
        words = os.read(0, 4096).split()
        alone = not words
        try:
            with open(f"{run_supervisor.STOP}.new", "w") as file:
                file.write(words[-1].decode() if words else "0")
            os.rename(f"{run_supervisor.STOP}.new", run_supervisor.STOP)
        except OSError:
            pass  # a full disk: the grace is then that of the job
        os.kill(os.getpid(), run_supervisor.SIGTERM)


def main(folder: str, secrets: str) -> None:
    """`secrets`: where they are open."""
    if os.fork():
        os._exit(0)  # Ray kills the children of an actor that ends: this is no child of its
    given = run_files.read_all(int(secrets))
    os.closerange(3, 65536)
    run_supervisor.look_after(folder, RankWorker, given)
    if alone:
        import shutil

        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
