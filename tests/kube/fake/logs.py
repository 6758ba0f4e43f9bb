"""A container's output: kept with the time of each line, and followed by whoever asks."""

import asyncio
import datetime
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

_LONGEST = 16 * 1024
"""Bytes, after which a line is cut, as container runtimes do."""


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class Log:
    """Lines as `TIME TAG TEXT`: the tag is F for a line, P for a part of one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)
        self._begun = b""
        self._news = asyncio.Event()
        self.ended = False

    def write(self, data: bytes) -> None:
        *lines, self._begun = (self._begun + data).split(b"\n")
        time = now().strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
        out = [b"%s F %s\n" % (time, line) for line in lines]
        while len(self._begun) >= _LONGEST:
            out.append(b"%s P %s\n" % (time, self._begun[:_LONGEST]))
            self._begun = self._begun[_LONGEST:]
        self._add(time, out)

    def end(self) -> None:
        time = now().strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
        self.ended = True
        self._add(time, [b"%s P %s\n" % (time, self._begun)] if self._begun else [])
        self._file.close()

    def _add(self, time: bytes, lines: list[bytes]) -> None:
        if lines:
            self._file.write(b"".join(lines))
        self._news.set()
        self._news = asyncio.Event()

    async def read(self, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """As `GET pods/NAME/log` has it: follow, tailLines, sinceTime, sinceSeconds, timestamps,
        limitBytes."""
        left = int(query.get("limitBytes") or 1 << 60)
        since = _since(query)
        at = self._tail(query.get("tailLines"))
        while left > 0:
            ended, news = self.ended, self._news
            lines, at = self._from(at)
            text = b"".join(
                _shown(line, since, query.get("timestamps") == "true") for line in lines
            )
            if text:
                yield text[:left]
                left -= len(text)
            if not lines:
                if ended or query.get("follow") != "true":
                    return
                await news.wait()

    def _from(self, at: int) -> tuple[list[bytes], int]:
        """Whole lines from there on, at most a megabyte, and where the next begins."""
        with self.path.open("rb") as file:
            file.seek(at)
            read = file.read(1 << 20)
        whole = read[: read.rfind(b"\n") + 1]
        return whole.splitlines(keepends=True), at + len(whole)

    def _tail(self, lines: str | None) -> int:
        if lines is None:
            return 0
        read = self.path.read_bytes()
        every = read.splitlines(keepends=True)
        return len(read) - sum(map(len, every[len(every) - min(int(lines), len(every)) :]))


def _since(query: Mapping[str, str]) -> str:
    if seconds := query.get("sinceSeconds"):
        then = now() - datetime.timedelta(seconds=int(seconds))
        return then.strftime("%Y-%m-%dT%H:%M:%S.%f")
    return query.get("sinceTime", "").removesuffix("Z")


def _shown(line: bytes, since: str, timestamps: bool) -> bytes:
    time, tag, text = line[:-1].split(b" ", 2)
    if since and time.decode().removesuffix("Z") < since:
        return b""
    return (time + b" " if timestamps else b"") + text + (b"\n" if tag == b"F" else b"")
