"""The actor of one rank: it is on the node, has its GPU, and runs the user's command there.

What goes in and out is of plain types, so that a service of another version is understood well
enough to be told so. Methods run on threads: while one waits for news, another may be asked.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from boa._version import __version__
from boa.engines import launching
from boa.engines.environments import find
from boa.engines.keepers import enclose
from boa.engines.passing import passed
from boa.engines.processes import orphans, run_files, run_supervisor
from boa.engines.ray.node_memory import NodeMemory
from boa.packing.unpack import unpack
from boa.plain_file import NotPlain, read_plain
from boa.private_files import private_file

PATIENCE_S = 10.0
"""How long `news` waits for some."""
GATHER_S = 0.1
"""Seconds from the first output to the answer, so that a worker that prints much is not many
answers."""
PIECE = 1024 * 1024
"""Bytes of output in one answer: what is kept of much of it is soon told."""
LOOK_S = 1.0
ASKED_S = 0.5
"""Seconds between two looks whether the command has asked for a keeper of its state."""
SEEN_S = 5.0
"""Seconds until a file that the service has left is seen here: network file systems take their
time."""
OF_RAY = (
    "RAY_CLIENT_MODE",
    "RAY_JOB_ID",
    "RAY_RAYLET_PID",
    "RAY_LD_PRELOAD_ON_WORKERS",
    "SPT_NOENV",
)
"""Variables that Ray sets for its own workers."""
SUPERVISE = (
    "import sys; sys.path += sys.argv[1:3]; "
    "import rank_supervisor; rank_supervisor.main(*sys.argv[3:])"
)


class Rank:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._state = "idle"
        """idle, up, ended"""
        self._rank = -1
        self._output, self._first, self._limit = bytearray(), 0, 0
        """The output that is kept, the bytes that came before it, and the most that are kept."""
        self._outcome: tuple[int | None, bool, str] | None = None
        self._done, self._saved_at = False, 0.0
        self._ended_at, self._ended, self._was_up = 0.0, 0.0, False
        self._folder = ""
        self._marks: orphans.Marks | None = None
        self._grace_s: float | None = None
        self._supervisor: subprocess.Popen[bytes] | None = None
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()

    # What the engine asks

    def prepare(self, checkpoint_dir: str, token: str) -> dict[str, Any]:
        """Where this is; `token`: a file in that folder, if it is shared."""
        import ray

        context = ray.get_runtime_context()
        environment = environment_of_node()
        return {
            "version": __version__,
            "node": context.get_node_id(),
            "ip": ray.util.get_node_ip_address(),
            "host": os.uname().nodename,
            "gpus": [str(name) for name in ray.get_gpu_ids()],
            "has_gpus": launching.has_gpus(),
            "port": launching.free_port(),
            "environment": {k: v for k, v in environment.items() if k == "OMP_NUM_THREADS"},
            "shared": not token or _appears(os.path.join(checkpoint_dir, token)),
        }

    def start(
        self,
        plan: dict[str, Any],
        workdir: str,
        own: bool,
        grace_s: float,
        limit: int,
        pass_env: Sequence[str] = (),
        secrets: Mapping[str, str] | None = None,
        place: Mapping[str, str] | None = None,
        package: bytes = b"",
        memory: Mapping[str, Any] | None = None,
    ) -> bool:
        """Whether the command is up; if not, `news` says why. `own`: the job's folder, by default:
        where it is not shared, every attempt has one here. `pass_env`: see `passing`; `secrets`, by
        variable, are in no file here. `place`: environment, image, and the digest of the `package`
        that it runs in a copy of. `memory` for its state between two runs: see `NodeMemory`.
        Raises NoPlace, BadPackage."""
        with self._changed:
            if self._state != "idle":
                return self._state == "up"
            self._rank, self._limit = plan["rank"], limit
            self._marks = orphans.marks_of(plan["env"])
            self._folder = tempfile.mkdtemp(prefix="boa-rank-")
            if own and not os.path.isdir(workdir):
                workdir = os.path.join(self._folder, "work")
                os.mkdir(workdir, 0o700)
            try:
                if package:
                    workdir = os.path.join(self._folder, "code")
                    unpack([package], workdir, (place or {})["digest"])
                self._offer(plan, memory, pass_env)
                self._put(plan, place or {}, workdir, pass_env)
            except BaseException:
                shutil.rmtree(self._folder, ignore_errors=True)
                raise
            document = {"plans": [plan], "workdir": workdir, "grace_s": grace_s, "log_bytes": limit}
            document["needs"] = sorted(secrets or {})
            for name, content in (
                (run_files.RESERVE, b" " * run_files.RESERVED),
                (run_supervisor.LAUNCH, run_files.packed(document)),
            ):
                private_file(Path(self._folder, name), content)
            self._state = "up"
        self._supervise(
            passed(environment_of_node(), pass_env),
            run_files.packed(dict(secrets)) if secrets else b"",
        )
        while not _is_up(self._folder) and self._outcome is None:
            time.sleep(0.005)
        return self._was_up or self._outcome is None

    def _offer(
        self, plan: dict[str, Any], memory: Mapping[str, Any] | None, pass_env: Sequence[str]
    ) -> None:
        if memory is None or memory["share"] <= 0:
            return
        env = plan["env"]
        with suppress(OSError):  # then it saves to the disk
            here = NodeMemory(
                memory,
                env["BOA_JOB_ID"],
                sys.executable,
                passed(environment_of_node(), pass_env),
            )
            if here.offered():
                env["BOA_KEEPER"] = here.folder
                threading.Thread(target=self._look_after, args=(here,), daemon=True).start()

    def _look_after(self, memory: NodeMemory) -> None:
        while self._state != "ended":
            memory.look()
            time.sleep(ASKED_S)

    def _put(
        self, plan: dict[str, Any], place: Mapping[str, str], workdir: str, pass_env: Sequence[str]
    ) -> None:
        """Into the environment or the image that the job names, and with a folder for its
        artifacts: where the service's is not shared, one that ends with the run."""
        env = plan["env"]
        artifacts = env.get("BOA_ARTIFACTS", "")
        if artifacts and not os.path.isdir(artifacts):
            artifacts = env["BOA_ARTIFACTS"] = os.path.join(self._folder, "artifacts")
            os.mkdir(artifacts, 0o700)
        keeper = env.get("BOA_KEEPER", "")
        if keeper and not enclose(keeper, ()):
            del env["BOA_KEEPER"]
            keeper = ""
        if not place.get("environment") and not place.get("image"):
            return
        found = find(
            place["environment"],
            place["image"],
            workdir=workdir,
            env={**passed(environment_of_node(), pass_env), **env},
            home=os.path.expanduser("~"),
            folders=list(filter(None, (env["BOA_CHECKPOINT_DIR"], artifacts, keeper))),
            gpus=launching.has_gpus(),
        )
        plan["env"] = {**env, **found.env}
        plan["argv"] = [*found.before, *plan["argv"]]
        if keeper and place["image"] and not enclose(keeper, found.before):
            del plan["env"]["BOA_KEEPER"]

    def stop(self, grace_s: float) -> None:
        """Also of a command that is about to start; of two graces the shorter holds, whichever
        call comes first: methods run on threads."""
        with self._changed:
            if self._grace_s is None or grace_s < self._grace_s:
                self._grace_s = grace_s
                self._pass_on()

    def news(self, offset: int, state: str) -> dict[str, Any]:
        """News for who knows so much of the output, and this state; or soon that there is none.

        The end is told when all of the output has been.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_new(offset, state), PATIENCE_S)
            self._look_for_saved()
            if self._state == state:
                self._changed.wait_for(lambda: self._state != state, GATHER_S)
            end = self._first + len(self._output)
            first = min(max(offset, self._first), end)
            data = bytes(self._output[first - self._first :][:PIECE])
            told = self._state != "ended" or first + len(data) == end
            return {
                "rank": self._rank,
                "state": self._state if told else "up",
                "first": first,
                "output": data,
                "outcome": self._outcome if told else None,
                "done": told and self._done,
                "saved_at": self._saved_at,
                "ended_at": self._ended_at,
                "ended_ago_s": time.monotonic() - self._ended,
            }

    # The command

    def _is_new(self, offset: int, state: str) -> bool:
        return self._state != state or self._first + len(self._output) > offset

    def _look_for_saved(self) -> None:
        """Note when its newest checkpoint was written, by its supervisor's file."""
        self._saved_at = run_files.saved_at(self._folder) or self._saved_at

    def _supervise(self, environment: dict[str, str], secrets: bytes) -> None:
        here = os.path.dirname(os.path.abspath(__file__))
        beside = os.path.dirname(run_supervisor.__file__)
        command = [sys.executable, "-I", "-S", "-c", SUPERVISE, here, beside]
        given = run_files.in_memory(secrets)
        try:
            supervisor = subprocess.Popen(
                [*command, self._folder, str(given)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
                pass_fds=[given],
            )
        finally:
            os.close(given)
        supervisor.wait()  # not the supervisor, but who began it
        threading.Thread(target=self._listen, args=(supervisor,), daemon=True).start()
        with self._changed:
            self._supervisor = supervisor
            self._pass_on()

    def _pass_on(self) -> None:
        """A stop that was asked for."""
        if self._supervisor is not None and self._grace_s is not None:
            assert self._supervisor.stdin is not None
            with suppress(OSError):  # it has ended
                os.write(self._supervisor.stdin.fileno(), f"{self._grace_s:.3f}\n".encode())

    def _listen(self, supervisor: "subprocess.Popen[bytes]") -> None:
        """Until the output ends, which is when the supervisor has."""
        assert supervisor.stdout is not None
        while data := os.read(supervisor.stdout.fileno(), run_supervisor.CHUNK):
            with self._changed:
                self._output += data
                if len(self._output) > self._limit + run_supervisor.CHUNK:
                    spare = len(self._output) - self._limit
                    del self._output[:spare]
                    self._first += spare
                self._changed.notify_all()
        self._was_up = _is_up(self._folder)
        self._look_for_saved()
        outcome, ended_at, ended = outcome_in(self._folder), time.time(), time.monotonic()
        done = is_done(self._folder)
        if outcome[0] is None and self._marks is not None:  # what the command had begun goes on
            orphans.kill([orphans.Traces(environ=self._marks)])
        shutil.rmtree(self._folder, ignore_errors=True)  # who hears of the end kills this process
        with self._changed:
            self._outcome, self._state, self._done = outcome, "ended", done
            self._ended_at, self._ended = ended_at, ended
            self._changed.notify_all()


def environment_of_node() -> dict[str, str]:
    """As Ray on this node was begun with: not what it set for this process alone since."""
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    parts = (os.fsdecode(entry).partition("=") for entry in entries if entry)
    return {name: value for name, _, value in parts if name not in OF_RAY}


def outcome_in(folder: str) -> tuple[int | None, bool, str]:
    try:
        text = read_plain(Path(folder, run_files.OUTCOME)).decode("utf-8", "replace")
        code, stopped, reason = text.split("\n")[:3]
        return int(code) if code else None, stopped[:1] == "1", reason.strip()
    except (FileNotFoundError, NotPlain):
        return None, False, "lost: its supervisor was killed"
    except (OSError, ValueError):
        return None, False, "lost: how it ended cannot be read"


def is_done(folder: str) -> bool:
    """Whether the outcome says that the job had left its sign of being done."""
    with suppress(OSError, NotPlain, ValueError, IndexError):
        how = read_plain(Path(folder, run_files.OUTCOME)).decode("utf-8", "replace").split("\n")[1]
        return how.endswith(run_files.DONE)
    return False


def _end_with(raylet: int) -> None:
    """A worker of Ray's looks for its raylet too, but takes it for alive unless process 1 is its
    parent now: where something else takes in orphans (systemd for users, say), it would go on."""
    while os.getppid() == raylet:
        time.sleep(LOOK_S)
    os._exit(1)


def _is_up(folder: str) -> bool:
    with suppress(FileNotFoundError):
        return any(name.startswith(run_supervisor.UP) for name in os.listdir(folder))
    return False


def _appears(path: str) -> bool:
    until = time.monotonic() + SEEN_S
    while not os.path.exists(path):
        if time.monotonic() > until:
            return False
        time.sleep(SEEN_S / 50)
    return True
