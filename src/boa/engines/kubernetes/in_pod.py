"""Process 1 of a pod: makes the run's folders, waits for the rest of the gang, and supervises.

The supervisor is the local engine's (`run_supervisor.py`), with all ranks of this node under it. It
comes in a Secret with the launch, so an image needs nothing of ours, only a Python. What the ranks
print goes to standard output, in frames; how it ended is the container's termination message.

/boa/launch     the Secret: this code, the launch, the job's secrets, its package
/boa/gate/go    the tag of this run and the address of its first pod, once all pods are up
/boa/run        the supervisor's files
/boa/work       where jobs run that name no folder of their own, their package, their artifacts
"""

import json
import os
import signal
import socket
import time

from boa.engines.kubernetes.frames import END, UP, Frames, put
from boa.engines.processes import run_files, run_supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, TypeAlias

    Outcome: TypeAlias = tuple[int | None, bool, str, bool, bool]
    """Exit code, whether it was told to stop, why, whether it was lost, whether it was done."""

BASE = "/boa"
MESSAGE = "/dev/termination-log"
COMMON, LAUNCH, SECRETS, PACKAGE, GO = "common", "launch", "secrets", "package", "go"
TOKEN = ".boa-run-"
"""Beginning of the name of a file that the first pod leaves for the others to see."""
OLD_S = 600.0
MASTER = "{boa:master}"
"""Stands for the address of the first pod, until it is known."""
LOOK_S = 0.03
SEEN_S = 10.0
"""Seconds until a file of another node is seen here: network file systems take their time."""
PR_SET_DUMPABLE = 4


class NotHere(Exception):
    """The run cannot begin in this pod: says why. `lost`: by no fault of the job's."""

    def __init__(self, why: str, lost: bool = False) -> None:
        self.lost = lost
        super().__init__(why)


class PodWorker(run_supervisor.Worker):
    logs: "dict[int, Frames]" = {}  # noqa: RUF012
    risen = False

    def __init__(self, plan: "dict[str, Any]", log_bytes: int) -> None:
        self.plan = plan
        self.log = self.logs[plan["rank"]] = Frames(plan["rank"])  # type: ignore[assignment]
        self.pid = self.output = 0
        self.code: int | None = None
        self.log.write(plan.get("notice", "").encode())

    @staticmethod
    def are_up() -> None:
        PodWorker.risen = True
        os.write(1, UP + b"\n")


def main(base: str = BASE, message: str = MESSAGE) -> "NoReturn":
    outcome: Outcome
    launch: dict[str, Any] = {}
    # Ranks are of the same user: they could write to our output, and so for each other.
    run_files.attempt(run_supervisor.prctl, PR_SET_DUMPABLE, 0)
    try:
        launch = joined(_read(base, "launch", COMMON), _read(base, "launch", LAUNCH))
        _obey_from_now_on(os.path.join(base, "run"), launch["grace_s"])
        outcome = _run(launch, base)
    except NotHere as trouble:
        outcome = None, False, str(trouble), trouble.lost, False
    except Exception as trouble:
        outcome = None, False, f"lost: its supervisor failed: {trouble!r}", True, False
    _withdraw(launch)
    _say(message, *outcome)
    os._exit(exit_code(outcome[0]))


def exit_code(code: "int | None") -> int:
    """The container's, by which its message is known to be ours: a run's own, as shells have it."""
    return 1 if code is None else code if code >= 0 else 128 - code


def joined(common: bytes, own: bytes) -> "dict[str, Any]":
    """The launch of this pod: what is all pods', and what is its own."""
    launch = {**run_files.unpacked(common), **run_files.unpacked(own)}
    for plan in launch["plans"]:
        plan["argv"] = plan["argv"] if "argv" in plan else list(launch["argv"])
        plan["env"] = {**launch["env"], **plan["env"]}
    return launch


def _run(launch: "dict[str, Any]", base: str) -> "Outcome":
    folder = os.path.join(base, "run")
    for plan in launch["plans"]:
        _make_folders(launch, plan, base)
    first = _await_gang(launch, base)
    if first is None:
        return 0, True, "stopped before it began", False, False
    workdir = _workdir(launch, base)
    for plan in launch["plans"]:
        _enter(launch, plan, workdir, first)
    if not launch["plans"]:
        return _hold(folder)
    launch["plans"][0]["notice"] = launch["notice"] if launch["first"] else ""
    document = {**launch, "workdir": workdir}
    run_files.replace_plain(folder, run_files.RESERVE, b" " * run_files.RESERVED)
    run_files.replace_plain(folder, run_supervisor.LAUNCH, run_files.packed(document))
    given = _read(base, "launch", SECRETS) if launch["needs"] else b""
    run_supervisor.look_after(folder, PodWorker, given)
    code, how, reason = _read(folder, run_files.OUTCOME).decode("utf-8", "replace").split("\n")[:3]
    lost, done = how == run_files.LOST, how.endswith(run_files.DONE)
    return int(code) if code else None, how[:1] == "1", reason.strip(), lost, done


def _obey_from_now_on(folder: str, grace_s: float) -> None:
    """A stop before the supervisor listens is left for it to find: process 1 has no signal that
    it does not ask for."""

    def heed(*_: object) -> None:
        run_files.replace_plain(folder, run_supervisor.STOP, f"{grace_s:.3f}".encode())

    signal.signal(signal.SIGTERM, heed)


def _hold(folder: str) -> "Outcome":
    """GPUs for a process that another pod runs."""
    os.write(1, UP + b"\n")
    while not os.path.lexists(os.path.join(folder, run_supervisor.STOP)):
        time.sleep(LOOK_S)
    return 0, True, "", False, False


# The gang


def _await_gang(launch: "dict[str, Any]", base: str) -> "str | None":
    """The address of its first pod, when all are up; None: it is to stop."""
    if not launch["gang"]:
        return "127.0.0.1"
    token = os.path.join(launch["checkpoint_dir"], launch["token"])
    if launch["first"]:
        _leave(token)
    until(lambda: _is_stopped(base) or _gate(base, launch["tag"]) != "")
    if _is_stopped(base):
        return None
    if launch["first"]:
        _check_port(launch["port"])
    elif not until(lambda: os.path.exists(token) or _is_stopped(base), launch["seen_s"]):
        raise NotHere(
            f"node {launch['node']} does not see what another writes to "
            f"{launch['checkpoint_dir']}: checkpoint_dir has to be in a volume that all nodes "
            "share, and that kubernetes.pod_template mounts there"
        )
    launch["opened"] = time.monotonic()
    return _gate(base, launch["tag"])


def until(done: "Callable[[], bool]", within_s: float = 1e9) -> bool:
    end = time.monotonic() + within_s
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(LOOK_S)
    return True


def _is_stopped(base: str) -> bool:
    return os.path.lexists(os.path.join(base, "run", run_supervisor.STOP))


def _gate(base: str, tag: str) -> str:
    try:
        words = _read(base, "gate", GO).decode().split()
    except FileNotFoundError:
        return ""
    return words[1] if words[:1] == [tag] and len(words) == 2 else ""


def _leave(token: str) -> None:
    """A file that every node must see: later runs go on from what this one leaves there."""
    folder = os.path.dirname(token)
    try:
        with open(token, "w"):
            pass
        for name in os.listdir(folder):  # of runs that were killed; others may be about to begin
            path = os.path.join(folder, name)
            if name.startswith(TOKEN) and os.stat(path).st_mtime < time.time() - OLD_S:
                run_files.attempt(os.unlink, path)
    except OSError as trouble:
        raise NotHere(
            f"{folder} cannot be written in the pod ({trouble.strerror}): "
            "kubernetes.pod_template has to mount a volume there that all nodes share"
        ) from None


def _withdraw(launch: "dict[str, Any]") -> None:
    """Unless others may still be looking for it."""
    if "opened" in launch and launch["first"] and time.monotonic() > launch["opened"] + SEEN_S:
        run_files.attempt(os.unlink, os.path.join(launch["checkpoint_dir"], launch["token"]))


def _check_port(port: int) -> None:
    """Pods may share a machine's network."""
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            raise NotHere(f"lost: port {port} is not free on its first node", lost=True) from None


# Where the ranks run


def _make_folders(launch: "dict[str, Any]", plan: "dict[str, Any]", base: str) -> None:
    """The service's own, where a volume has them; artifacts may be left in no other place."""
    run_files.attempt(_make, launch["checkpoint_dir"])
    artifacts = plan["env"].get("BOA_ARTIFACTS", "")
    if artifacts and os.path.isdir(os.path.dirname(artifacts)):
        run_files.attempt(_make, artifacts)
    if artifacts and not os.path.isdir(artifacts):
        if plan["rank"] == 0:
            launch["notice"] += (
                f"[boa] nothing is mounted at {artifacts} (kubernetes.pod_template): artifacts go "
                "with this pod\n"
            )
        plan["env"]["BOA_ARTIFACTS"] = os.path.join(base, "work", "artifacts")
        _make(plan["env"]["BOA_ARTIFACTS"])


def _make(folder: str) -> None:
    os.makedirs(folder, 0o770, exist_ok=True)


def _workdir(launch: "dict[str, Any]", base: str) -> str:
    if launch["pieces"]:
        from boa.packing.archive import BadPackage
        from boa.packing.unpack import unpack

        folder = os.path.join(base, "work", "code")
        pieces = (_read(base, "launch", f"{PACKAGE}{n}") for n in range(launch["pieces"]))
        try:
            unpack(pieces, folder, launch["digest"])
        except BadPackage as trouble:
            raise NotHere(f"its package cannot be unpacked: {trouble}") from None
        return folder
    workdir: str = launch["workdir"]
    if launch["own"] and not os.path.isdir(workdir):
        workdir = os.path.join(base, "work", "work")
        _make(workdir)
    if not os.path.isdir(workdir):
        raise NotHere(
            f"its workdir {workdir} is neither in the image {launch['image']} nor in a volume of "
            "kubernetes.pod_template: submit it with --package, or with a workdir that is there"
        )
    return workdir


def _enter(launch: "dict[str, Any]", plan: "dict[str, Any]", workdir: str, first: str) -> None:
    """Into the environment that the job names, and to the first pod's address."""
    plan["argv"] = [word.replace(MASTER, first) for word in plan["argv"]]
    if "MASTER_ADDR" in plan["env"]:
        plan["env"]["MASTER_ADDR"] = first
    for name, value in launch["defaults"].items():
        if name not in os.environ:
            plan["env"].setdefault(name, value)
    if launch["environment"]:
        from boa.engines.environments import NoPlace, find

        env = {**os.environ, **plan["env"]}
        home = os.path.expanduser("~")
        try:
            place = find(launch["environment"], "", workdir=workdir, env=env, home=home)
        except NoPlace as trouble:
            raise NotHere(str(trouble)) from None
        plan["env"] = {**plan["env"], **place.env}
        plan["argv"] = [*place.before, *plan["argv"]]


# What is told


def _say(path: str, code: "int | None", stopped: bool, reason: str, lost: bool, done: bool) -> None:
    """How it ended; bytes of output, so that it is known whether all of it arrived."""
    told = {
        "code": code,
        "stopped": stopped,
        "reason": reason,
        "lost": lost,
        "done": done,
        "up": PodWorker.risen,
        "at": time.time(),
        "seen": {rank: log.seen for rank, log in PodWorker.logs.items()},
    }
    said = json.dumps(told).encode()
    put(END + said + b"\n")
    run_files.attempt(_write, path, said)


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _read(*path: str) -> bytes:
    with open(os.path.join(*path), "rb") as file:
        return file.read()
