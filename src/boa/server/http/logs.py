"""Structured logs: one JSON object per line on stderr, one line per kind of trouble and minute."""

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TextIO

from boa.units import Seconds

_OTHERS = {"message", "asctime", "color_message", "_ray_timestamp_ns"}
_PLAIN = frozenset(vars(logging.makeLogRecord({})).keys() | _OTHERS)
"""Fields that every record has, or gets from others; any other was given as `extra`."""


TOLD_S: Seconds = 60.0
"""Trouble of a kind is told once in so long; the next line of its kind says how many were left out.
"""
MOST_KINDS = 500
LONGEST_KIND = 200


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {k: v for k, v in vars(record).items() if k not in _PLAIN}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        line = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
            **({"fields": fields} if fields else {}),
        }
        return json.dumps(line, default=str, ensure_ascii=False)


@dataclass(slots=True)
class _Kind:
    """A kind of trouble that was told of."""

    last: logging.LogRecord
    until: float
    """Nothing more is told of it before."""
    left_out: int = 0


class CalmHandler(logging.StreamHandler[TextIO]):
    """Writes one line per kind of trouble and minute, whoever makes a thousand of them."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self._clock = clock
        self._kinds: dict[Hashable, _Kind] = {}
        self._looking = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING or self._is_told(record):
            super().emit(record)

    def _is_told(self, record: logging.LogRecord) -> bool:
        kind, now = kind_of(record), self._clock()
        with self._looking:
            known = self._kinds.get(kind)
            if known is not None and now < known.until:
                known.left_out += 1
                known.last = record
                return False
            if known is not None and known.left_out:
                record.left_out = known.left_out
            self._kinds.pop(kind, None)
            self._kinds[kind] = _Kind(record, now + TOLD_S)  # the oldest is the first to go
            while len(self._kinds) > MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
        return True

    def tell_left_out(self) -> None:
        """Tell of what was left out in a minute that is over, though nothing followed."""
        now = self._clock()
        with self._looking:
            over = []
            for kind, known in self._kinds.items():
                if now < known.until:
                    break  # all that follow were told of later
                over.append(kind)
            due = [known for kind in over if (known := self._kinds.pop(kind)).left_out]
        for known in due:
            if known.left_out > 1:
                known.last.left_out = known.left_out - 1  # this one is told after all
            self.handle(known.last)


def kind_of(record: logging.LogRecord) -> Hashable:
    """The same for lines that differ in their figures only, or in whom they happened to."""
    what = str(record.msg).partition("\n")[0][:LONGEST_KIND]
    kind, _, trace = record.exc_info or (None, None, None)
    where = None
    while trace is not None:
        where = trace.tb_frame.f_code, trace.tb_lineno
        trace = trace.tb_next
    return record.name, record.levelno, what, kind, where


def tell_left_out() -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler, CalmHandler):
            handler.tell_left_out()


def configure(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Everything that is logged in this process goes to one place in one format."""
    handler = CalmHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("boa").setLevel(level)


def log(level: str, text: str) -> None:
    """Log a line of the control loop's."""
    logging.getLogger("boa.runtime").log(logging.getLevelNamesMapping()[level.upper()], text)
