"""One container of a pod: a process, its output and its state."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

from kube.fake.logs import Log, now
from kube.fake.spaces import Launch, spawn
from kube.fake.values import Object

PAUSE = ["sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait"]
"""What a container without a command does; as process 1, `sleep` alone would ignore SIGTERM."""
_MESSAGE = 4096


def stamp() -> str:
    return now().strftime("%Y-%m-%dT%H:%M:%SZ")


class Container:
    """Waiting, running or terminated."""

    def __init__(self, spec: Object, folder: Path) -> None:
        self.name, self.spec, self.folder = str(spec["name"]), spec, folder
        folder.mkdir(parents=True)
        self.message = folder / "termination-log"
        self.state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
        self.log: Log | None = None
        self.ended = asyncio.Event()
        self._pid = 0
        self._began = ""

    @property
    def exit_code(self) -> int | None:
        terminated = self.state.get("terminated")
        return None if terminated is None else int(terminated["exitCode"])

    async def start(self, launch: Launch) -> None:
        """Begin it; what cannot be begun has ended with 128."""
        self.message.write_bytes(b"")
        self.message.chmod(0o666)
        self.log = Log(self.folder / "log")
        self.ended, self._began = asyncio.Event(), stamp()
        reads, writes = os.pipe()
        try:
            self._pid = await spawn(launch, writes)
        except OSError as error:
            os.close(reads)
            self.log.end()
            self._end(128, "StartError", f"failed to start the container: {error}")
            return
        finally:
            os.close(writes)
        self.state = {"running": {"startedAt": self._began}}
        loop = asyncio.get_running_loop()
        os.set_blocking(reads, False)
        loop.add_reader(reads, self._read, reads)
        watched = os.pidfd_open(self._pid)
        loop.add_reader(watched, self._reap, watched, reads)

    def kill(self, sig: signal.Signals) -> None:
        """Its first process alone, as runtimes do."""
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, sig)

    def status(self) -> dict[str, Any]:
        """As a kubelet writes it."""
        return {
            "name": self.name,
            "image": self.spec.get("image", ""),
            "imageID": "",
            "containerID": f"fake://{self._pid}" if self._began else "",
            "ready": "running" in self.state,
            "started": "running" in self.state,
            "restartCount": 0,
            # what a strategic merge would keep is taken away by its name
            "state": {"waiting": None, "running": None, "terminated": None} | self.state,
            "lastState": {},
        }

    def _read(self, reads: int) -> bool:
        """Whether there may be more."""
        assert self.log is not None
        try:
            data = os.read(reads, 1 << 18)
        except BlockingIOError:
            return False
        if data:
            self.log.write(data)
        else:
            asyncio.get_running_loop().remove_reader(reads)
        return bool(data)

    def _reap(self, watched: int, reads: int) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(watched)
        os.close(watched)
        _, status = os.waitpid(self._pid, 0)
        code = os.waitstatus_to_exitcode(status)
        # Its whole space of processes is gone: no more than what is in the pipe can come.
        while self._read(reads):
            pass
        loop.remove_reader(reads)
        os.close(reads)
        assert self.log is not None
        self.log.end()
        self._pid = 0
        code = code if code >= 0 else 128 - code
        self._end(code, "Completed" if code == 0 else "Error", "")

    def _end(self, code: int, reason: str, message: str) -> None:
        said = message or self.message.read_bytes()[:_MESSAGE].decode(errors="replace")
        ended = {
            "exitCode": code,
            "reason": reason,
            "startedAt": self._began,
            "finishedAt": stamp(),
        }
        self.state = {"terminated": ended | ({"message": said} if said else {})}
        self.ended.set()
