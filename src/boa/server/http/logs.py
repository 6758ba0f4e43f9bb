"""Structured logs: one JSON object per line on stderr."""

import json
import logging
import sys
from typing import Any, TextIO

_OTHERS = {"message", "asctime", "color_message", "_ray_timestamp_ns"}
_PLAIN = frozenset(vars(logging.makeLogRecord({})).keys() | _OTHERS)
"""Fields that every record has, or gets from others; any other was given as `extra`."""


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


def configure(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Everything that is logged in this process goes to one place in one format."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("boa").setLevel(level)


def log(level: str, text: str) -> None:
    """Log a line of the control loop's."""
    logging.getLogger("boa.runtime").log(logging.getLevelNamesMapping()[level.upper()], text)
