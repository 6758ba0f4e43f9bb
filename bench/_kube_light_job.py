"""A job that does nothing, for a quick look: writes down when it began, and waits for SIGTERM.

_kube_light_job.py MARKS_FOLDER, with marks as bench/_restart_job.py has them.
"""

import time

BEGAN = time.time()

import json  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

FOLDER = Path(sys.argv[1])


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    (FOLDER / f"up-{os.environ['RANK']}").touch()
    first = os.environ["RANK"] == "0"
    if first:
        _await_all(int(os.environ["WORLD_SIZE"]))
        _write("started", {"began": BEGAN, "joined": time.time(), "stepped": time.time()})
    signal.sigwait([signal.SIGTERM])
    told = time.time()
    if first:
        _write("stopped", {"told": told, "agreed": told, "saved": told})


def _await_all(ranks: int) -> None:
    while len(list(FOLDER.glob("up-*"))) < ranks:
        time.sleep(0.005)


def _write(name: str, marks: dict[str, float]) -> None:
    (FOLDER / f"{name}.new").write_text(json.dumps(marks))
    (FOLDER / f"{name}.new").rename(FOLDER / f"{name}.json")


if __name__ == "__main__":
    main()
