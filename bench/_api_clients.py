"""Clients of the API by the hundred, in a process of their own: as little work as can be done to
send a request and to see that it was answered.

`.venv/bin/python bench/_api_clients.py` reads one question as JSON a line, and answers with one.
"""

import asyncio
import itertools
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

PATIENCE_S = 120.0
OK, NOT_OK = 200, 300
IDLE = 'while [ -d "${BOA_CHECKPOINT_DIR%/checkpoints/*}" ]; do sleep 2; done'
"""A job that does nothing, until the service's folder is removed: then it ends by itself."""


@dataclass
class Timed:
    """Answers: how long each took, and what went wrong."""

    seconds: list[float] = field(default_factory=list)
    wrong: dict[str, int] = field(default_factory=dict)

    def failed(self, what: str) -> None:
        self.wrong[what] = self.wrong.get(what, 0) + 1

    def summary(self, whole_s: float, each: int = 1) -> dict[str, Any]:
        found = sorted(self.seconds) or [float("nan")]
        return {
            "answers": len(self.seconds),
            "seconds": whole_s,
            "per_s": each * len(self.seconds) / whole_s,
            "p50_ms": 1e3 * found[len(found) // 2],
            "p99_ms": 1e3 * found[min(len(found) * 99 // 100, len(found) - 1)],
            "max_ms": 1e3 * found[-1],
            "wrong": self.wrong,
        }


class Caller:
    """One connection, kept open; opened anew where the server has closed it."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, body: bytes = b"", token: str | None = None
    ) -> tuple[int, bytes]:
        for attempt in itertools.count(1):
            try:
                return await self._ask(self.request(method, path, body, token))
            except (ConnectionError, asyncio.IncompleteReadError):
                self.close()
                if attempt > 1:
                    raise
        raise AssertionError

    def request(self, method: str, path: str, body: bytes = b"", token: str | None = None) -> bytes:
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
        head = (
            f"{method} /api/v1/{path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Authorization: Bearer {token or self._token}\r\n{kind}\r\n"
        )
        return head.encode() + body

    async def _ask(self, request: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        lowered = head.lower()
        where = lowered.index(b"content-length:") + 15
        length = int(lowered[where : lowered.index(b"\r", where)])
        answer = await reader.readexactly(length)
        if b"connection: close" in lowered:
            self.close()
        return status, answer

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


Turn = Callable[[Caller, int], Awaitable[tuple[int, bytes]]]
"""The request of a number, made."""


async def many(port: int, token: str, clients: int, count: int, turn: Turn) -> Timed:
    """So many requests, by so many clients at once."""
    timed, numbers = Timed(), iter(range(count))

    async def one() -> None:
        caller = Caller(port, token)
        for number in numbers:
            began = time.perf_counter()
            try:
                status, answer = await asyncio.wait_for(turn(caller, number), PATIENCE_S)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as problem:
                timed.failed(type(problem).__name__)
                caller.close()
                continue
            if OK <= status < NOT_OK:
                timed.seconds.append(time.perf_counter() - began)
            else:
                timed.failed(f"{status} {answer[:120].decode('utf-8', 'replace')}")
        caller.close()

    await asyncio.gather(*(one() for _ in range(clients)))
    return timed


# What can be asked for


def spec(number: int, classes: int) -> dict[str, Any]:
    return {"class": f"class-{number % classes}", "run": IDLE, "gpus": {"min": 1, "max": 1}}


async def singles(
    port: int, token: str, clients: int, count: int, classes: int, first: int = 0
) -> dict[str, Any]:
    bodies = [json.dumps(spec(first + n, classes)).encode() for n in range(count)]
    began = time.perf_counter()
    timed = await many(
        port, token, clients, count, lambda caller, n: caller.ask("POST", "jobs", bodies[n])
    )
    return timed.summary(time.perf_counter() - began)


async def batches(
    port: int, token: str, clients: int, count: int, classes: int, size: int, first: int = 0
) -> dict[str, Any]:
    bodies = [
        json.dumps({"jobs": [spec(first + n * size + i, classes) for i in range(size)]}).encode()
        for n in range(count)
    ]
    began = time.perf_counter()
    timed = await many(
        port, token, clients, count, lambda caller, n: caller.ask("POST", "jobs/batch", bodies[n])
    )
    return timed.summary(time.perf_counter() - began, size)


async def reports(
    port: int, token: str, clients: int, count: int, tokens: list[tuple[str, str]]
) -> dict[str, Any]:
    """Of these running jobs in turn, each in its first epoch and ever further."""
    began = time.perf_counter()

    def turn(caller: Caller, number: int) -> Awaitable[tuple[int, bytes]]:
        job, own = tokens[number % len(tokens)]
        at = time.perf_counter() - began
        document = {
            "attempt": 1,
            "epoch": 0,
            "progress": 10.0 * at,
            "units": 10.0 * at,
            "uptime_s": at + 1.0,
            "step": number,
            "metrics": {"loss": 1.0 / (1.0 + at), "batch_size": 64},
        }
        return caller.ask("POST", f"jobs/{job}/report", json.dumps(document).encode(), own)

    timed = await many(port, token, clients, count, turn)
    return timed.summary(time.perf_counter() - began)


async def gets(port: int, token: str, clients: int, count: int, path: str) -> dict[str, Any]:
    began = time.perf_counter()
    timed = await many(port, token, clients, count, lambda caller, n: caller.ask("GET", path))
    return timed.summary(time.perf_counter() - began)


async def _listen(port: int, token: str, path: str, accept: str, counted: dict[str, int]) -> None:
    """A stream, read until it is cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"GET /api/v1/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {token}\r\nAccept: {accept}\r\n\r\n".encode()
        )
        status = (await reader.readline())[9:12].decode()
        counted[status] = counted.get(status, 0) + 1
        while block := await reader.read(1 << 20):
            counted["bytes"] = counted.get("bytes", 0) + len(block)
    finally:
        writer.close()


async def streams(
    port: int,
    token: str,
    paths: list[tuple[str, str, int]],
    seconds: float,
    submits_per_s: float,
    classes: int,
) -> dict[str, Any]:
    """Health while so many streams are open and jobs go on being submitted. `paths`: each with
    what is accepted and how many listen to it."""
    counted: dict[str, int] = {}
    listening = [
        asyncio.create_task(_listen(port, token, path, accept, counted))
        for path, accept, number in paths
        for _ in range(number)
    ]
    wanted = sum(number for *_, number in paths)
    began = time.perf_counter()
    while counted.get("200", 0) < wanted and time.perf_counter() - began < PATIENCE_S:
        await asyncio.sleep(0.1)
    opened_s = time.perf_counter() - began
    await asyncio.sleep(2.0)
    before = counted.get("bytes", 0)
    timed, submitted = await asyncio.gather(
        _health(port, token, seconds),
        _now_and_then(port, token, seconds, submits_per_s, classes),
    )
    for task in listening:
        task.cancel()
    await asyncio.gather(*listening, return_exceptions=True)
    streamed = (counted.get("bytes", 0) - before) / seconds / 1e6
    return {
        **timed.summary(seconds),
        "opened_s": opened_s,
        "listening": counted.get("200", 0),
        "streamed_mb_per_s": streamed,
        "submit_p99_ms": submitted.summary(seconds)["p99_ms"],
    }


async def _health(port: int, token: str, seconds: float, every_s: float = 0.05) -> Timed:
    """Asked at even moments, on a connection that is there: one that is late delays no other."""
    timed = Timed()

    async def one(caller: Caller) -> None:
        began = time.perf_counter()
        try:
            status, _ = await asyncio.wait_for(caller.ask("GET", "health"), PATIENCE_S)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as problem:
            timed.failed(type(problem).__name__)
            return
        if status == OK:
            timed.seconds.append(time.perf_counter() - began)
        else:
            timed.failed(str(status))

    asked, end = list[asyncio.Task[None]](), time.perf_counter() + seconds
    free = list[Caller]()

    async def turn(caller: Caller) -> None:
        await one(caller)
        free.append(caller)

    while time.perf_counter() < end:
        asked.append(asyncio.create_task(turn(free.pop() if free else Caller(port, token))))
        await asyncio.sleep(every_s)
    await asyncio.gather(*asked)
    return timed


async def _now_and_then(port: int, token: str, seconds: float, per_s: float, classes: int) -> Timed:
    timed, caller = Timed(), Caller(port, token)
    if per_s <= 0:
        return timed
    end = time.perf_counter() + seconds
    for number in itertools.count():
        began = time.perf_counter()
        if began >= end:
            return timed
        body = json.dumps(spec(number, classes)).encode()
        status, _ = await caller.ask("POST", "jobs", body)
        if status == OK + 1:
            timed.seconds.append(time.perf_counter() - began)
        await asyncio.sleep(max(began + 1.0 / per_s - time.perf_counter(), 0.0))
    raise AssertionError


async def aborted(port: int, token: str, at_once: int, seconds: float) -> dict[str, Any]:
    """Health while clients ask and go away in the middle of their requests, so many at a time."""
    over = asyncio.Event()
    gone = 0

    async def rude() -> None:
        nonlocal gone
        caller = Caller(port, token)
        while not over.is_set():
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(caller.request("POST", "jobs", b"x" * 4096)[:-2000])
                await asyncio.sleep(0.02)
                writer.transport.abort()
                gone += 1

    tasks = [asyncio.create_task(rude()) for _ in range(at_once)]
    timed = await _health(port, token, seconds)
    over.set()
    await asyncio.gather(*tasks)
    return {**timed.summary(seconds), "aborted_per_s": gone / seconds}


QUESTIONS: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "singles": singles,
    "batches": batches,
    "reports": reports,
    "gets": gets,
    "streams": streams,
    "aborted": aborted,
}


def main() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16_384) if hard > 0 else soft, hard))
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps(asyncio.run(_timed(name, arguments))), flush=True)


async def _timed(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    busy = time.process_time()
    found = await QUESTIONS[name](**arguments)
    return {**found, "clients_cpu_s": time.process_time() - busy}


if __name__ == "__main__":
    main()
