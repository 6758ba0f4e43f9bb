"""A pod's life on a fake node, as a kubelet leads it."""

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kube.fake.client import STRATEGIC, Refused
from kube.fake.container import PAUSE, Container, stamp
from kube.fake.spaces import Bind, Launch
from kube.fake.values import NotThere, Object, environment, expanded
from kube.fake.volumes import Volumes

if TYPE_CHECKING:
    from kube.fake.node import Node

MISSING = "missing.test/"
"""Images from there cannot be pulled."""
_AGAIN_S = 0.5
_LEAST_GRACE_S = 2.0
"""What a kubelet gives, even to a pod whose object is gone."""


class Pod:
    """From its admission to the end of its processes."""

    def __init__(self, node: "Node", pod: Object) -> None:
        self.node, self.pod = node, pod
        self.uid, self.name = pod["metadata"]["uid"], pod["metadata"]["name"]
        self.namespace = pod["metadata"]["namespace"]
        self.path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self.address = node.host.new_address()
        self.folder: Path = node.folder / self.uid
        self.folder.mkdir(parents=True)
        self.containers = [
            Container(one, self.folder / "containers" / one["name"])
            for one in pod["spec"]["containers"]
        ]
        self.began, self.failed, self._why = stamp(), "", ""
        self.volumes: Volumes | None = None
        self._token = ""
        self._conditions: dict[str, dict[str, str]] = {}
        self._stopping = self._removed = self._finished = False
        self._killing: asyncio.TimerHandle | None = None
        self._kill_at = float("inf")
        self._news = asyncio.Event()
        self._tasks = [asyncio.create_task(one) for one in (self._live(), self._tell())]

    @property
    def gpus(self) -> int:
        """That it holds: until its containers have ended."""
        if self.failed or self._finished:
            return 0
        limits = [one.spec.get("resources", {}).get("limits", {}) for one in self.containers]
        return sum(int(one.get("nvidia.com/gpu", 0)) for one in limits)

    @property
    def phase(self) -> str:
        if self.failed:
            return "Failed"
        codes = [one.exit_code for one in self.containers]
        if self._finished and all(code is not None for code in codes):
            return "Failed" if any(codes) else "Succeeded"
        began = any("waiting" not in one.state for one in self.containers)
        return "Running" if began else "Pending"

    def update(self, pod: Object) -> None:
        """The object has changed."""
        self.pod = pod
        if self.volumes is not None and not self._finished:
            self.volumes.refresh(self._seen(), self._token)
        if pod["metadata"].get("deletionTimestamp"):
            self._stop(float(pod["metadata"].get("deletionGracePeriodSeconds", 30)))

    def removed(self) -> None:
        """The object is gone: nothing of it may stay."""
        self._removed = True
        self._stop(0)
        self._news.set()

    def die(self) -> None:
        """With its machine."""
        for task in self._tasks:
            task.cancel()
        for container in self._running():
            container.kill(signal.SIGKILL)

    def _running(self) -> Iterator[Container]:
        return (one for one in self.containers if "running" in one.state)

    def _stop(self, grace_s: float) -> None:
        """SIGTERM once, SIGKILL after its grace, of which the shortest counts."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(grace_s, _LEAST_GRACE_S)
        if not self._stopping:
            for container in self._running():
                container.kill(signal.SIGTERM)
        self._stopping = True
        self._news.set()
        if at < self._kill_at:
            self._kill_at = at
            if self._killing:
                self._killing.cancel()
            self._killing = loop.call_at(at, self._kill)

    def _kill(self) -> None:
        for container in self._running():
            container.kill(signal.SIGKILL)

    async def _live(self) -> None:
        try:
            if self._admitted():
                await self._pull()
                await self._prepare()
            if self.volumes is not None:  # else it was deleted before it began
                await asyncio.gather(*(self._run(one) for one in self.containers))
        except Exception as error:  # ours, and not the pod's
            self.failed, self._why = "FakeNodeError", f"{type(error).__name__}: {error}"
            self.node.say(f"{self.namespace}/{self.name}: {self._why}")
        self._finished = True
        self._news.set()

    def _admitted(self) -> bool:
        used, wanted = self.node.gpus_held(besides=self), self.gpus
        if wanted and used + wanted > self.node.gpus:
            self.failed = "OutOfnvidia.com/gpu"
            self._why = (
                f"Pod Node didn't have enough resource: nvidia.com/gpu, requested: {wanted}, "
                f"used: {used}, capacity: {self.node.gpus}"
            )
        return not self.failed

    async def _pull(self) -> None:
        """Forever, for what is not to be had."""
        for reason in ("ErrImagePull", "ImagePullBackOff"):
            if not (bad := [one for one in self.containers if self._is_missing(one)]):
                return
            for container in bad:
                text = f'Back-off pulling image "{container.spec["image"]}"'
                container.state = {"waiting": {"reason": reason, "message": text}}
            self._news.set()
            await self._pause()
        while not self._stopping:
            await self._pause()

    def _is_missing(self, container: Container) -> bool:
        return str(container.spec.get("image", "")).startswith(MISSING)

    async def _pause(self) -> None:
        if not self._stopping:
            await asyncio.sleep(_AGAIN_S)

    async def _prepare(self) -> None:
        """Volumes; what is not there yet is waited for."""
        while not self._stopping:
            try:
                claims = await self.node.host.fetch(self.pod)
                self._token = await self.node.host.token_for(self.pod)
                self.volumes = Volumes(
                    self.pod, self.folder / "volumes", self.node.host.finder(self.pod), claims
                )
                self.volumes.fill(self._seen(), self._token)
                return
            except NotThere as error:
                self._wait("ContainerCreating", str(error))
                await self._pause()

    def _wait(self, reason: str, message: str) -> None:
        for container in self.containers:
            container.state = {"waiting": {"reason": reason, "message": message}}
        self._news.set()

    async def _run(self, container: Container) -> None:
        if (launch := await self._launch(container)) is None:
            return
        await container.start(launch)
        if self._stopping:  # it came in between
            container.kill(signal.SIGTERM)
        self._news.set()
        await container.ended.wait()
        self._news.set()

    async def _launch(self, container: Container) -> Launch | None:
        assert self.volumes is not None
        base, find = self.node.host.base_environment(self.pod), self.node.host.finder(self.pod)
        while not self._stopping:
            try:
                env = environment(self._seen(), container.spec, find, base)
                break
            except NotThere as error:
                reason = {"reason": "CreateContainerConfigError", "message": str(error)}
                container.state = {"waiting": reason}
                self._news.set()
                await self._pause()
                await self.node.host.fetch(self.pod)
        else:
            return None
        spec = container.spec
        argv = [expanded(one, env) for one in (*spec.get("command", []), *spec.get("args", []))]
        user, group = _who(self.pod, spec)
        return Launch(
            argv=argv or PAUSE,
            env=env,
            cwd=spec.get("workingDir", "/"),
            root=self.node.host.root,
            binds=[*self._own_binds(container), *self.volumes.binds(spec)],
            hostname=base["HOSTNAME"],
            scratch=container.folder / "scratch",
            user=user,
            group=group,
        )

    def _own_binds(self, container: Container) -> Iterator[Bind]:
        hosts = self.folder / "hosts"
        name = self.pod["spec"].get("hostname", self.name)
        hosts.write_text(f"127.0.0.1\tlocalhost\n{self.address}\t{name}\n")
        yield Bind(hosts, "/etc/hosts")
        message = container.spec.get("terminationMessagePath", "/dev/termination-log")
        if not container.message.exists():
            container.message.touch()
        yield Bind(container.message, message)

    def _seen(self) -> Object:
        """The object with the addresses that it has from us."""
        status = {**self.pod.get("status", {}), "podIP": self.address, "hostIP": "127.0.0.1"}
        return {**self.pod, "status": status}

    async def _tell(self) -> None:
        """What has changed, until there is nobody to be told of."""
        told: dict[str, Any] | None = None
        while not (self._finished and self._removed):
            self._news.clear()
            status = self._status()
            if status != told and (self.phase != "Pending" or told or self._is_waiting()):
                try:
                    body = {"metadata": {"uid": self.uid}, "status": status}
                    await self.node.client.ask("PATCH", self.path + "/status", body, STRATEGIC)
                except Refused as refused:
                    if refused.code not in (404, 409):
                        self.node.say(f"{self.path}: {refused}")
                told = status
            if self._finished and self._stopping and not self._news.is_set():
                await self._let_go()
            await self._news.wait()
        self.node.forget(self)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _let_go(self) -> None:
        """Containers have ended: with a kubelet, their logs end here too."""
        for container in self.containers:
            container.log = None
        if not self._removed:
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
            try:
                await self.node.client.ask("DELETE", self.path, body)
            except Refused as refused:
                if refused.code not in (404, 409):
                    self.node.say(f"{self.path}: {refused}")

    def _is_waiting(self) -> bool:
        waits = [one.state.get("waiting", {}) for one in self.containers]
        return any("message" in one for one in waits)

    def _condition(self, kind: str, holds: bool) -> dict[str, str]:
        """With the time when it became so."""
        said = "True" if holds else "False"
        if self._conditions.get(kind, {}).get("status") != said:
            changed = {"type": kind, "status": said, "lastTransitionTime": stamp()}
            self._conditions[kind] = changed
        return self._conditions[kind]

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = {"phase": self.phase, "startTime": self.began}
        if self.failed:
            return {**status, "reason": self.failed, "message": self._why}
        is_up = all("running" in one.state for one in self.containers)
        conditions = {"Initialized": True, "Ready": is_up, "ContainersReady": is_up}
        status["conditions"] = [self._condition(kind, holds) for kind, holds in conditions.items()]
        status["containerStatuses"] = [one.status() for one in self.containers]
        if self.phase != "Pending":
            addresses = {"podIP": self.address, "podIPs": [{"ip": self.address}]}
            status |= {"hostIP": "127.0.0.1", **addresses}
        return status


def _who(pod: Object, container: Object) -> tuple[int, int]:
    """User and group to be, where we may choose."""
    context = pod["spec"].get("securityContext", {}) | container.get("securityContext", {})
    user = int(context.get("runAsUser", 0))
    may = os.geteuid() == 0 and _maps_everyone()
    return (user, int(context.get("runAsGroup", 0))) if may else (0, 0)


def _maps_everyone() -> bool:
    """In a user namespace of a usual user there is nobody but root."""
    return int(Path("/proc/self/uid_map").read_text().split()[2]) > 1
