"""Listening, serving, ending; structured logs; the page at `/`."""

import io
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from boa.errors import InputError
from boa.server.http import logs
from boa.server.http.run import listen, url_of
from fakes import FakeService

SCRIPT = """
import sys
from pathlib import Path
from boa.server.http.run import listen, serve, url_of
from fakes import FakeService

service = FakeService(Path(sys.argv[1]))
listening = listen("127.0.0.1", 0)
serve(service.app, listening, lambda: print(url_of(listening), flush=True))
print("let go", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_soon_and_what_follows_is_still_done(
    tmp_path: Path, number: signal.Signals
) -> None:
    tests = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tests)},
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        headers = {"Accept": "text/event-stream"}
        with httpx.stream("GET", f"{url}/api/v1/events", headers=headers, timeout=300) as events:
            next(events.iter_lines())
            process.send_signal(number)
            assert process.wait(timeout=300) == 0, "it does not wait for its streams"
        assert process.stdout.read() == "let go\n"
        assert process.stderr.read() == ""


def test_a_port_that_is_taken_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError) as refused:
            listen("127.0.0.1", port)
    assert refused.value.exit_code == 2
    assert re.fullmatch(
        rf"--port: 127\.0\.0\.1 port {port}: address already in use; expected a free one "
        r"\(is another boa serve running\?\)",
        str(refused.value),
    )


@pytest.mark.parametrize("host", ["nowhere.invalid", "not a name", "\u0000", "x" * 300])
def test_a_host_that_is_none_of_ours_is_one_clear_error(host: str) -> None:
    with pytest.raises(InputError, match="--host"):
        listen(host, 0)


def test_a_port_can_be_taken_again_at_once(tmp_path: Path, port: int) -> None:
    """A service that was killed comes back on the port that its jobs report to."""
    service = FakeService(tmp_path)
    with service.serving(port) as url:
        httpx.get(f"{url}/api/v1/health", timeout=300)
    with service.serving(port) as again:
        assert again == url
        assert httpx.get(f"{again}/api/v1/health", timeout=300).json()["version"] == "1.2.3"


@pytest.mark.parametrize(
    ("bound", "url"),
    [
        (("127.0.0.1", 8420), "http://127.0.0.1:8420"),
        (("0.0.0.0", 8420), "http://127.0.0.1:8420"),
        (("::", 8420, 0, 0), "http://[::1]:8420"),
    ],
)
def test_processes_of_this_machine_are_told_an_address_that_works(
    bound: tuple[str, int], url: str
) -> None:
    listening = Mock(spec=socket.socket)
    listening.getsockname.return_value = bound
    assert url_of(listening) == url


def test_answers_are_not_held_back_by_nagle(tmp_path: Path) -> None:
    """asyncio turns it off only where it can see that a socket is TCP; else 40 ms an answer."""
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_the_page_is_complete_in_itself(tmp_path: Path) -> None:
    answer = FakeService(tmp_path).ask("GET", "/")
    assert answer.headers["content-type"].startswith("text/html")
    assert "BOA Constrictor 1.2.3" in answer.text
    assert "://" not in answer.text, "nothing from elsewhere"
    for path in ("api/openapi.json", "api/v1/health", "metrics"):
        assert f'href="{path}"' in answer.text


# Logs


@pytest.fixture
def lines() -> io.StringIO:
    stream = io.StringIO()
    logs.configure(stream)
    return stream


def test_every_line_of_the_log_is_one_json_object(lines: io.StringIO) -> None:
    logs.log("warning", "disk full\nand more")
    logging.getLogger("boa.x").info("job %s", "7", extra={"job": "7", "path": Path("/tmp")})
    try:
        raise ZeroDivisionError("oops")
    except ZeroDivisionError:
        logging.getLogger("boa.x").exception("failed")
    first, second, third = map(json.loads, lines.getvalue().splitlines())
    assert abs(first.pop("at") - time.time()) < 60
    assert first == {
        "level": "warning",
        "message": "disk full\nand more",
        "logger": "boa.runtime",
    }
    assert second["fields"] == {"job": "7", "path": "/tmp"}
    assert "ZeroDivisionError: oops" in third["fields"]["traceback"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def calm() -> Iterator[tuple[logging.Logger, Clock, logs.CalmHandler]]:
    """A logger of its own, its clock, and what writes its lines."""
    clock, logger = Clock(), logging.getLogger("calm")
    handler = logs.CalmHandler(io.StringIO(), clock)
    handler.setFormatter(logs.JsonLines())
    logger.addHandler(handler)
    yield logger, clock, handler
    logger.removeHandler(handler)


def written(handler: logs.CalmHandler) -> list[dict[str, Any]]:
    assert isinstance(handler.stream, io.StringIO)
    return [json.loads(line) for line in handler.stream.getvalue().splitlines()]


def test_trouble_of_a_kind_is_told_once_a_minute_with_how_often_it_came(
    calm: tuple[logging.Logger, Clock, logs.CalmHandler],
) -> None:
    logger, clock, handler = calm
    for n in range(1000):
        logger.warning("refused %s", f"10.0.0.{n}")
    logger.warning("something else")
    assert [line["message"] for line in written(handler)] == ["refused 10.0.0.0", "something else"]
    clock.now = 61.0
    logger.warning("refused %s", "10.0.0.7")
    last = written(handler)[-1]
    assert (last["message"], last["fields"]) == ("refused 10.0.0.7", {"left_out": 999})
    clock.now = 200.0
    handler.tell_left_out()
    assert len(written(handler)) == 3, "nothing was left out since"


def test_what_was_left_out_is_told_though_nothing_follows(
    calm: tuple[logging.Logger, Clock, logs.CalmHandler],
) -> None:
    logger, clock, handler = calm
    for n in range(10):
        logger.error("trouble %d", n)
    handler.tell_left_out()
    assert len(written(handler)) == 1, "the minute is not over"
    clock.now = 61.0
    handler.tell_left_out()
    last = written(handler)[-1]
    assert (last["message"], last["fields"]) == ("trouble 9", {"left_out": 8})
    handler.tell_left_out()
    assert len(written(handler)) == 2


def test_errors_of_two_kinds_are_both_told_and_what_is_no_trouble_always_is(
    calm: tuple[logging.Logger, Clock, logs.CalmHandler],
) -> None:
    logger, _, handler = calm
    logger.setLevel(logging.INFO)
    for _ in range(3):
        for problem in (ValueError("a"), OSError("b")):
            logger.error("failed", exc_info=problem)
        logger.info("as usual")
    assert [line["message"] for line in written(handler)] == [
        "failed",
        "failed",
        *["as usual"] * 3,
    ]


def test_kinds_that_were_told_of_are_not_remembered_without_end(
    calm: tuple[logging.Logger, Clock, logs.CalmHandler],
) -> None:
    logger, _, handler = calm
    for n in range(logs.MOST_KINDS + 1):
        logger.warning(f"kind {n}")
    logger.warning(f"kind {logs.MOST_KINDS}")
    logger.warning("kind 0")
    assert len(written(handler)) == logs.MOST_KINDS + 2


def test_others_are_heard_only_when_something_is_wrong(lines: io.StringIO) -> None:
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert len(lines.getvalue().splitlines()) == 1
