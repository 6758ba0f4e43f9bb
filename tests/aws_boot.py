"""Machines for the instances of a moto server: each boots its user data, and is one Ray node.

A machine is a process that is given all orphans below it, so that it ends with all that was begun
on it: when it is switched off, and when the tests are gone. What one computer needs that is to be
several is added to `ray start` by a script of that name on its PATH; `nvidia-smi` is acted out, and
`shutdown` ends the instance at moto, as AWS would.
"""

import base64
import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aws_faults import Layer

PR_SET_CHILD_SUBREAPER = 36
POLL_S, OFF_S = 0.1, 120.0
TAG = "/latest/meta-data/tags/instance/"
STUBS = {
    "nvidia-smi": 'seq -f "GPU %g: Tesla T4" $GPUS',
    "shutdown": 'curl -sf -X POST -d "$*" "$BOA_METADATA/shutdown"',
    "ray": """$RAY "$@" --temp-dir=$HERE --num-cpus=4 --num-gpus=1 --node-ip-address=$IP \\
  --object-store-memory=$OBJECT_STORE --min-worker-port=0 --max-worker-port=0 \\
  --dashboard-agent-listen-port=0 --include-log-monitor=false || exit
for found in $(grep -lsa "=$HERE/session" /proc/[0-9]*/cmdline); do
  ln -s "${found%/cmdline}" "$BOA_PROC/"
done""",
}
"""ray: the machine's own processes are in its own /proc."""


class Machine:
    """A computer that is on."""

    def __init__(self, folder: Path, user_data: bytes, env: dict[str, str]) -> None:
        self.folder = folder
        (folder / "proc").mkdir(parents=True)
        (folder / "script").write_bytes(user_data)
        for name, text in STUBS.items():
            stub = folder / "bin" / name
            stub.parent.mkdir(exist_ok=True)
            stub.write_text(f"#!/bin/bash\n{text}\n")
            stub.chmod(0o755)
        own = {
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "RAY": str(Path(sys.executable).with_name("ray")),
            "HERE": str(folder),
            "BOA_STATE": str(folder / "state"),
            "BOA_PROC": str(folder / "proc"),
        }
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "AWS_"))}
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(folder / "script")],
            stdin=subprocess.PIPE,
            env={**inherited, **env, **own},
            start_new_session=True,
            cwd=folder,
        )

    @property
    def is_on(self) -> bool:
        return self._process.poll() is None

    def log(self) -> str:
        path = self.folder / "state" / "log"
        return path.read_text() if path.exists() else ""

    def off(self) -> None:
        """As if the plug were pulled."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(OFF_S) == 0


class Hypervisor:
    """Gives every running instance a machine, and switches it off when AWS ends the instance."""

    def __init__(self, layer: "Layer", folder: Path, env: dict[str, str]) -> None:
        self._layer, self._folder, self._env = layer, folder, env
        self.machines: dict[str, Machine] = {}
        """By instance id; those that are off stay."""
        self.shut_down: dict[str, str] = {}
        """Those that ended themselves, and what they said."""
        self.duds = 0
        """Of the next machines, how many have no GPU."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def tick(self) -> None:
        """What AWS does by itself; tests call it while they wait."""
        for id in list(self._layer.sky.truth):
            running, known = self._layer.sky.state(id) == "running", self.machines.get(id)
            if running and known is None:
                self.machines[id] = self._boot(id)
            elif not running and known is not None and known.is_on:
                known.off()

    def tag(self, id: str, name: str) -> str | None:
        """As moto has it."""
        groups = self._layer.ec2.describe_instances(InstanceIds=[id])["Reservations"]
        tags = {tag["Key"]: tag["Value"] for tag in groups[0]["Instances"][0]["Tags"]}
        return tags.get(name)

    def end(self, id: str, said: str) -> None:
        """InstanceInitiatedShutdownBehavior is terminate."""
        self.shut_down[id] = said
        self._layer.ec2.terminate_instances(InstanceIds=[id])
        self._layer.sky.end(id, "Client.InstanceInitiatedShutdown")

    def close(self) -> None:
        try:
            for machine in self.machines.values():
                if machine.is_on:
                    machine.off()
        finally:
            self._server.shutdown()
            self._thread.join(300)
            self._server.server_close()

    def _boot(self, id: str) -> Machine:
        number = len(self.machines) + 1
        said = self._layer.ec2.describe_instance_attribute(InstanceId=id, Attribute="userData")
        own = {
            "BOA_METADATA": f"http://127.0.0.1:{self._server.server_port}/{id}",
            "GPUS": "0" if self.duds else "1",
            "INSTANCE": id,
            "IP": f"127.0.1.{number}",
        }
        folder = self._folder / f"m{number}"  # short: Ray's sockets are in it
        self.duds = max(self.duds - 1, 0)
        user_data = base64.b64decode(said["UserData"]["Value"])
        return Machine(folder, user_data, {**self._env, **own})


def _handler(hypervisor: Hypervisor) -> type[BaseHTTPRequestHandler]:
    class Metadata(BaseHTTPRequestHandler):
        """IMDSv2 for every machine under its instance's id, and its power button."""

        def do_PUT(self) -> None:
            self._say("session" if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else None)

        def do_GET(self) -> None:
            _, id, path = self.path.split("/", 2)
            known = self.headers["X-aws-ec2-metadata-token"] == "session"
            is_tag = known and f"/{path}".startswith(TAG)
            self._say(hypervisor.tag(id, f"/{path}".removeprefix(TAG)) if is_tag else None)

        def do_POST(self) -> None:
            said = self.rfile.read(int(self.headers["Content-Length"])).decode()
            hypervisor.end(self.path.split("/")[1], said)
            self._say("")

        def _say(self, text: str | None) -> None:
            self.send_response(404 if text is None else 200)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *said: Any) -> None: ...

    return Metadata


@contextlib.contextmanager
def hypervisor(layer: "Layer", folder: Path, env: dict[str, str]) -> Iterator[Hypervisor]:
    made = Hypervisor(layer, folder, env)
    try:
        yield made
    finally:
        made.close()


# In the machine's own process


def _run(script: str) -> None:
    """Boot, bury who dies, and end with all others when the plug is pulled."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    subprocess.Popen(["bash", script], stdin=subprocess.DEVNULL)
    while not select.select([0], [], [], POLL_S)[0]:
        _bury()
    while pids := _below(os.getpid()):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
        _bury()
    os._exit(0)


def _bury() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _below(root: int) -> list[int]:
    children = defaultdict(list)
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            children[int(stat[1])].append(int(name))
    found = list(children[root])
    for pid in found:  # which grows
        found += children[pid]
    return found


if __name__ == "__main__":
    _run(sys.argv[1])
