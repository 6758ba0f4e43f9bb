"""The script that a node boots with, run by a real shell: its metadata and Ray are acted out."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from boa.clouds.aws.bootstrap import MAX_BYTES, script
from boa.errors import InputError
from boa.model.provider_settings import AwsMachine, AwsSettings
from boa.model.workload import GpuType

TOKEN = "boa-1234-abcd-7"
T4 = GpuType(name="T4", price=1.0, gpus_per_node=4)
SETTINGS = AwsSettings(
    region="us-east-1",
    image="ami-1",
    subnets=("subnet-a",),
    machines={"T4": AwsMachine(instance_types=("g4dn.12xlarge",))},
    head="10.0.0.5:6379",
)
PATIENCE_S = 300.0
STUBS = {
    "ray": 'printf "%s\\n" "$@" > $HERE/ray.new; mv $HERE/ray.new $HERE/ray',
    "shutdown": 'echo "$@" > $HERE/shutdown',
    "nvidia-smi": 'for n in $(seq $GPUS); do echo "GPU $n: Tesla T4"; done',
    "sleep": "[ $1 = 900 ] && exec /bin/sleep $JOIN_S\n"
    "exec /bin/sleep $(awk -v s=$1 'BEGIN { print s / 1000 }')",
}
"""sleep: a thousand times as fast; but what waits for a node to join is a test's to say."""


class Metadata(BaseHTTPRequestHandler):
    """IMDSv2: tags only for those who have asked for a session first."""

    def do_PUT(self) -> None:
        self._say("session" if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else None)

    def do_GET(self) -> None:
        known = self.headers["X-aws-ec2-metadata-token"] == "session"
        is_tag = self.path == "/latest/meta-data/tags/instance/boa:token"
        self._say(TOKEN if known and is_tag else None)

    def _say(self, text: str | None) -> None:
        self.send_response(404 if text is None else 200)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, *said: Any) -> None: ...


@pytest.fixture
def metadata() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(300)
    server.server_close()


class Node:
    """A machine that boots: its own /proc and PATH."""

    def __init__(
        self, folder: Path, metadata: str, settings: AwsSettings, gpus: int, join_s: float
    ) -> None:
        self.folder = folder
        for name, text in STUBS.items():
            stub = folder / "bin" / name
            stub.parent.mkdir(exist_ok=True)
            stub.write_text(f"#!/bin/bash\n{text}\n")
            stub.chmod(0o755)
        (folder / "proc" / "17").mkdir(parents=True)
        (folder / "proc" / "17" / "comm").write_text("raylet\n")
        (folder / "script").write_text(script(settings, T4))
        self._environment = {
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "HERE": str(folder),
            "GPUS": str(gpus),
            "JOIN_S": str(join_s),
            "BOA_METADATA": metadata,
            "BOA_STATE": str(folder / "state"),
            "BOA_PROC": str(folder / "proc"),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def boot(self) -> None:
        command = ["bash", str(self.folder / "script")]
        self._process = subprocess.Popen(
            command, env=self._environment, start_new_session=True, cwd=self.folder
        )
        assert self._process.wait(PATIENCE_S) == 0, "cloud-init is not kept waiting"

    def ray_ends(self) -> None:
        (self.folder / "proc" / "17" / "comm").write_text("bash\n")

    def is_up(self) -> bool:
        return not (self.folder / "shutdown").exists()

    def log(self) -> str:
        return (self.folder / "state" / "log").read_text()

    def wait_for(self, name: str) -> str:
        """The line in file `name`, once it is written to its end."""
        file = self.folder / name
        self._wait(name, lambda: file.exists() and file.read_text().endswith("\n"))
        return file.read_text()

    def joins(self) -> None:
        self._wait("joined", (self.folder / "state" / "joined").exists)

    def _wait(self, name: str, is_there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_there():
            assert time.monotonic() < deadline, f"no {name}: {self.log()}"
            time.sleep(0.01)

    def close(self) -> None:
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return


@pytest.fixture
def boots(tmp_path: Path, metadata: str) -> Iterator[Any]:
    made: list[Node] = []

    def boot(*, gpus: int = 4, join_s: float = PATIENCE_S, **fields: Any) -> Node:
        node = Node(tmp_path, metadata, replace(SETTINGS, **fields), gpus, join_s)
        made.append(node)
        node.boot()
        return node

    yield boot
    for node in made:
        node.close()


def test_a_node_joins_with_its_token_and_its_gpus(boots: Any) -> None:
    node = boots()
    arguments = node.wait_for("ray").splitlines()
    assert arguments[:2] == ["start", "--address=10.0.0.5:6379"]
    resources = next(a for a in arguments if a.startswith("--resources="))
    assert json.loads(resources.removeprefix("--resources=")) == {"T4": 4}
    assert f"--labels=boa-token={TOKEN}" in arguments
    node.joins()
    assert node.is_up()


def test_a_node_ends_when_ray_does(boots: Any) -> None:
    node = boots()
    node.joins()
    node.ray_ends()
    assert node.wait_for("shutdown").split() == ["-h", "now"]
    assert "Ray has ended" in node.log()


def test_what_setup_exports_ray_has(boots: Any) -> None:
    setup = "export WHO=\"it's $(echo me)\"\necho 'setup ran' > $HERE/setup\nset -- 'a b'"
    node = boots(setup=setup)
    assert node.wait_for("setup") == "setup ran\n"
    node.wait_for("ray")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"setup": "false\ntouch $HERE/went-on"}, "the setup failed"),
        ({"setup": "exit 0"}, "the setup failed"),
        ({"gpus": 3}, "its GPUs are not all there"),
        ({"setup": "ray() { return 1; }"}, "ray start failed"),
        ({"setup": "ask() { false; }"}, "its token cannot be read"),
    ],
)
def test_a_node_that_cannot_join_ends(boots: Any, fields: Any, why: str) -> None:
    node = boots(**fields)
    node.wait_for("shutdown")
    assert why in node.log()
    assert not (node.folder / "went-on").exists()
    assert not (node.folder / "state" / "joined").exists()


def test_a_node_that_hangs_ends(boots: Any) -> None:
    node = boots(setup="/bin/sleep 600", join_s=0.5)
    node.wait_for("shutdown")
    assert "not joined after 900 s" in node.log()


def test_a_setup_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"aws.setup: the script .* has \d+ bytes"):
        script(replace(SETTINGS, setup="'" * 4000), T4)
    assert len(script(replace(SETTINGS, setup="é" * 4000), T4).encode()) < MAX_BYTES


def test_a_setup_cannot_break_out_of_its_quotes(tmp_path: Path) -> None:
    text = script(replace(SETTINGS, setup="echo '@HEAD@'; touch \"$HERE/'\" #`$("), T4)
    (tmp_path / "script").write_text(text)
    checked = subprocess.run(["bash", "-n", str(tmp_path / "script")], capture_output=True)
    assert checked.returncode == 0, checked.stderr
    assert "echo '\"'\"'@HEAD@'\"'\"'" in text, "and stays as it was written"
