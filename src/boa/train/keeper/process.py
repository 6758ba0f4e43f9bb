"""A keeper: `python -m boa.train.keeper.process FOLDER …`, or by its path in any Python.

FOLDER is the job's: there it listens (`keeper`), and whoever may enter it may ask. It lends memory
to ranks, and holds what they leave there under the name of a generation until somebody says that it
is not needed: on the disk, or followed by another. Writing to the disk is not its work: it starts
the command that it is given for it, and again should that fail.

It ends when it is asked to (SIGTERM: after what it holds is on the disk, whoever writes it), and by
itself when nobody has talked to it for a while and it has nothing to write.
"""

import argparse
import fcntl
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

if __package__:
    from boa.train.keeper import far, messages
    from boa.train.keeper.generations import Generation
    from boa.train.keeper.ledger import Ledger, in_words, share_of_memory
    from boa.train.keeper.messages import Message
    from boa.train.keeper.segments import Segment, Segments, rounded
    from boa.train.keeper.stripes import Stripes
else:  # alone, in whatever Python the job has
    import far  # type: ignore[import-not-found, no-redef]
    import messages  # type: ignore[import-not-found, no-redef]
    from generations import Generation  # type: ignore[import-not-found, no-redef]
    from ledger import Ledger, in_words, share_of_memory  # type: ignore[import-not-found, no-redef]
    from messages import Message  # type: ignore[no-redef]
    from segments import Segment, Segments, rounded  # type: ignore[import-not-found, no-redef]
    from stripes import Stripes  # type: ignore[import-not-found, no-redef]

Answer: TypeAlias = tuple[Message, Sequence[int]]
SOCKET, LOCK, WANTED = "keeper", "keeper.lock", "wanted"
BEFORE = "before"
"""A file in its folder: words before a command that it is given (JSON), where that is for a
container."""
UNWRITTEN_S = 6 * 3600.0
"""State that cannot be written to the disk for so long is let go of, with nobody there."""
IDLE_S = 60.0
"""Without a rank, and without state that is on no disk, it stays so long, and its memory with it,
which the next run need not have from the system again."""
SHARE = 0.4
"""The share of the node's memory for all keepers together, unless somebody says otherwise."""
BREATH_S = 5.0
"""Before writing to the disk begins: meanwhile the next run can load, and has the processors."""
LATER = 4
"""After a failure to write to the disk, so many breaths until it is tried again."""
SOME = 12
"""Breaths after which a file that another node has written is seen here, too."""
MOST_FAR = 64
"""Others that are answered at a time."""
NICENESS = 10
LOOK_S = 1.0


class _Answered(Exception):
    """There is no segment, but this to say."""

    def __init__(self, message: Message) -> None:
        self.message = message
        super().__init__(message)


class Keeper:
    def __init__(
        self,
        folder: Path,
        ledger: Ledger,
        *,
        host: str,
        node: str,
        idle_s: float,
        breath_s: float,
        unwritten_s: float,
    ) -> None:
        """`host`: an address of this node where keepers and ranks of others reach it; empty: they
        do not. `node`: its name. `breath_s`: before writing to the disk begins."""
        self._folder, self._ledger, self._idle_s, self._breath_s = folder, ledger, idle_s, breath_s
        self._again_s = breath_s * LATER
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._segments = Segments(when_filled=self._awake)
        self._generations: dict[str, Generation] = {}
        self._ranks: set[socket.socket] = set()
        self._released: list[str] = []
        """Generations that others need no more, as they have said from afar."""
        self._used_at, self._ending = time.monotonic(), False
        self._key = secrets.token_hex(16)
        self._far = socket.create_server((host, 0)) if host else None
        self._host, self._node, self._unwritten_s = host, node, unwritten_s

    # As long as it is needed

    def run(self) -> None:
        listener = messages.listen(self._folder / SOCKET)
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        if self._far is not None:
            threading.Thread(target=self._serve_far, daemon=True).start()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        while not self._is_over():
            for ready, _ in self._selector.select(LOOK_S):
                if ready.fileobj is listener:
                    with suppress(OSError):  # too many files: it is heard when there are fewer
                        connection, _ = listener.accept()
                        self._ranks.add(connection)
                        self._selector.register(connection, selectors.EVENT_READ)
                elif isinstance(ready.fileobj, socket.socket):
                    self._hear(ready.fileobj)
                else:
                    with suppress(BlockingIOError):
                        os.read(self._woken, 4096)
            while self._released:
                self._release(self._released.pop())
            self._see_to_writers()
        (self._folder / SOCKET).unlink(missing_ok=True)

    def _is_over(self) -> bool:
        unsafe = any(g.command for g in self._generations.values())
        if self._ranks or unsafe:
            self._used_at = time.monotonic()
        gone = not self._folder.is_dir()
        idle = time.monotonic() - self._used_at > self._idle_s
        asked = self._ending and not self._generations  # another's writer may be reading ours
        return gone or (not unsafe and (idle or asked))

    def _end(self) -> None:
        self._ending = True

    def _awake(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._wake, b"\0")

    # What ranks say

    def _hear(self, rank: socket.socket) -> None:
        try:
            heard = messages.receive(rank)
        except (OSError, ValueError):
            heard = None
        if heard is None:
            self._leave(rank)
            return
        message, descriptors = heard
        for descriptor in descriptors:  # nobody has any to give
            os.close(descriptor)
        try:
            answer, given = self._answered(rank, message)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            answer, given = {"refused": f"it was not understood: {problem!r}"}, ()
        try:
            messages.send(rank, answer, given)
        except OSError:
            self._leave(rank)

    def _leave(self, rank: socket.socket) -> None:
        """Segments that it was lent and has left nothing in are free."""
        self._selector.unregister(rank)
        self._ranks.discard(rank)
        rank.close()
        for segment in self._segments.all.values():
            if segment.lent_to is rank:
                segment.lent_to = None
        for generation in self._generations.values():
            if generation.will is not None and generation.will[0] is rank:
                with suppress(KeyError, TypeError, ValueError, AttributeError):
                    self._to_write(generation, generation.will[1])
            if rank in generation.kept_by:
                generation.kept_by.discard(rank)
                generation.look_at = time.monotonic() + SOME * self._breath_s

    def _answered(self, rank: socket.socket, message: Message) -> Answer:
        asked = message["ask"]
        if asked == "reserve":
            return self._reserve(rank, int(message["bytes"]))
        if asked == "open":
            segment = self._segments.all[int(message["segment"])]
            if segment.generation != str(message["generation"]) or not segment.generation:
                return {"refused": "it holds something else by now"}, ()
            return {"bytes": segment.size}, segment.memory.files
        if asked == "keep":
            segment = self._segments.all[int(message["segment"])]
            if segment.lent_to is not rank:
                return {"refused": "it was not lent to you"}, ()
            segment.generation, segment.lent_to = str(message["generation"]), None
            generation = self._generations.setdefault(segment.generation, Generation())
            generation.pointer = str(message.get("pointer", ""))
            generation.kept_by.add(rank)
            if message.get("command"):
                generation.will = rank, message
            return {"kept": segment.generation}, ()
        if asked == "write":
            self._to_write(self._generations[str(message["generation"])], message)
            return {"writing": "soon"}, ()
        if asked == "release":
            self._release(str(message["generation"]))
            return {"released": message["generation"]}, ()
        if asked == "where":
            port = None if self._far is None else self._far.getsockname()[1]
            told = {"host": self._host, "port": port, "key": self._key, "node": self._node}
            return {**told, "pid": os.getpid()}, ()
        raise ValueError(asked)

    def _reserve(self, rank: socket.socket, count: int) -> Answer:
        size = rounded(count)
        lent = next((s for s in self._segments.all.values() if s.lent_to is rank), None)
        try:
            segment = lent if lent is not None and lent.size >= size else self._found(size)
        except _Answered as answer:
            return answer.message, ()
        segment.lent_to = rank
        if segment.problem:
            self._drop(segment)
            return {"refused": f"there is no more memory: {segment.problem}"}, ()
        if not segment.is_ready:
            return {"later": f"{segment.filled} of {segment.size} bytes are there"}, ()
        return {"segment": segment.number, "bytes": segment.size}, segment.memory.files

    def _found(self, size: int) -> Segment:
        """A segment of this size for who asks; `_Answered` where there is none."""
        if any(generation.command for generation in self._generations.values()):
            raise _Answered({"later": "what the last run left is being written to the disk"})
        if (free := self._segments.free(size)) is not None:
            return free
        for unused in [s for s in self._segments.all.values() if s.is_free]:
            self._drop(unused)  # too small
        left = self._ledger.take(self._segments.bytes, size)
        while left < size and len(self._generations) > 1:  # what was followed by another
            followed = next(iter(self._generations))
            for segment in self._segments.holding(followed):
                self._drop(segment)
            self._release(followed)
            left = self._ledger.take(self._segments.bytes, size)
        if left >= size:
            return self._segments.made(size)
        most, left = self._ledger.most_bytes, max(left, 0)
        raise _Answered(
            {
                "refused": f"{in_words(size)} are asked for, and of {in_words(most)} for state in "
                f"memory on this node (memory_share) {in_words(left)} are free"
            }
        )

    def _drop(self, segment: Segment) -> None:
        self._segments.drop(segment)
        self._ledger.set(self._segments.bytes)

    def _release(self, name: str) -> None:
        generation = self._generations.pop(name, None)
        if generation is not None and generation.writing is not None:
            generation.writing.kill()
            generation.writing.wait()
        for segment in self._segments.holding(name):
            segment.generation = ""

    # To the disk

    def _to_write(self, generation: Generation, message: Message) -> None:
        if not generation.command:
            generation.command = tuple(map(str, message["command"]))
            generation.env = {str(name): str(value) for name, value in message["env"].items()}
            generation.asked_at = time.monotonic()
            generation.try_at = generation.asked_at + self._breath_s

    def _see_to_writers(self) -> None:
        """Start what is to be written when who left it is gone, and hear how it went. What nobody
        will write or find is free."""
        now = time.monotonic()
        for name, generation in list(self._generations.items()):
            writing = generation.writing
            if writing is not None and writing.poll() is not None:
                generation.writing, generation.try_at = None, now + self._again_s
                if writing.returncode == 0:
                    self._release(name)
                    continue
            late = now - generation.asked_at > self._unwritten_s and not self._ranks
            if generation.command and generation.writing is None and late:
                self._release(name)
                continue
            if generation.is_lost(name, now, SOME * self._breath_s):
                self._release(name)
                continue
            due = (self._ending or now >= generation.try_at) and not generation.kept_by
            if generation.command and generation.writing is None and due:
                generation.try_at = now + self._again_s
                with suppress(OSError, ValueError):
                    generation.writing = _started(generation, self._folder)

    # From other nodes

    def _serve_far(self) -> None:
        assert self._far is not None
        free = threading.Semaphore(MOST_FAR)
        while True:
            free.acquire()  # others wait: whoever they are, they take none of our files
            try:
                connection, _ = self._far.accept()
            except OSError:
                free.release()
                time.sleep(LOOK_S)
                continue
            threading.Thread(target=self._answer_far, args=[connection, free], daemon=True).start()

    def _answer_far(self, connection: socket.socket, free: threading.Semaphore) -> None:
        with connection, suppress(OSError):
            far.answer(connection, self._key, self._bytes_of, self._no_more)
        free.release()

    def _bytes_of(self, generation: str, number: int) -> Stripes | None:
        segment = self._segments.all.get(number)
        if segment is None or not generation or segment.generation != generation:
            return None
        return segment.memory

    def _no_more(self, generation: str) -> None:
        self._released.append(generation)  # by the loop, which has all the rest
        self._awake()


def _started(generation: Generation, folder: Path) -> "subprocess.Popen[bytes]":
    """It gives way to training, as the keeper does."""
    with open(folder / "keeper.log", "ab") as log:
        return subprocess.Popen(
            [*_before(folder), *generation.command],
            env={**os.environ, **generation.env},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: os.nice(NICENESS) and None,
        )


def _before(folder: Path) -> list[str]:
    try:
        return [str(word) for word in json.loads((folder / BEFORE).read_text())]
    except (OSError, ValueError, TypeError):  # there are none
        return []


def main(words: Sequence[str] | None = None) -> None:
    serve(options_of(words))


def serve(options: Any) -> None:
    """Until nobody needs it."""
    folder: Path = options.folder
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # there is one
        sys.exit(0)
    os.nice(NICENESS)
    ledger = Ledger(options.ledger or folder / "ledger", share_of_memory(options.share))
    try:
        Keeper(
            folder,
            ledger,
            host=options.host,
            node=options.node,
            idle_s=options.idle_s,
            breath_s=options.breath_s,
            unwritten_s=options.unwritten_s,
        ).run()
    finally:
        ledger.close()


def options_of(words: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ledger", type=Path, help="a folder that all keepers of the node share")
    parser.add_argument("--share", type=float, default=SHARE, help="of the node's memory")
    parser.add_argument("--host", default="", help="an address of this node, for other nodes")
    parser.add_argument("--node", default="", help="the name of this node")
    parser.add_argument("--idle-s", type=float, default=IDLE_S, help="until it ends by itself")
    parser.add_argument("--breath-s", type=float, default=BREATH_S, help="before it writes")
    parser.add_argument(
        "--unwritten-s", type=float, default=UNWRITTEN_S, help="that state waits for a disk"
    )
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
