"""Webhooks and Slack: one POST, signed where there is a key, and no redirect followed.

Only `boa.yaml` says where to: nobody who asks the service can send it anywhere. Of the answer only
the status is kept, so that it shows nobody what is at that address.
"""

import hashlib
import hmac
import http.client
import json
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from boa._version import __version__
from boa.formats.notify import URL
from boa.model.notices import Notice
from boa.server.notify.errors import NotDelivered
from boa.server.notify.patience import patience
from boa.units import Seconds

TIMEOUT_S: Seconds = 10.0
WHOLE_S: Seconds = 30.0
"""For all of a request and its answer, however slowly that comes."""
REFUSED = (400, 413, 422)
"""Answers that are about what was said: the next notice may well be taken."""
ANSWER_BYTES = 64 * 1024
"""Bytes of an answer that are read, so that the connection ends in order."""
SLACK_CHARACTERS = 3000
ID, TIMESTAMP, SIGNATURE = "Boa-Notice", "Boa-Timestamp", "Boa-Signature"


def document(notice: Notice, service: str) -> dict[str, Any]:
    """A notice as a webhook's body; `service`: the name that makes its own unique."""
    return {
        "id": f"{service}/{notice.name}",
        "kind": notice.kind,
        "at": notice.at,
        "text": notice.text,
        "job": notice.job,
        "data": dict(notice.data),
    }


def signature(key: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 of TIMESTAMP.BODY: who checks the time as well is safe from old ones."""
    said = timestamp.encode() + b"." + body
    return f"v1={hmac.new(key.encode(), said, hashlib.sha256).hexdigest()}"


def post_webhook(url: str, key: str, notice: Notice, service: str) -> None:
    told = document(notice, service)
    body = json.dumps(told, separators=(",", ":")).encode()
    timestamp = str(int(time.time()))
    headers = {ID: str(told["id"]), TIMESTAMP: timestamp}
    if key:
        headers[SIGNATURE] = signature(key, timestamp, body)
    post(url, body, headers)


def post_slack(url: str, notices: Sequence[Notice]) -> None:
    """As Slack's incoming webhooks take it; Mattermost's, Rocket.Chat's and Discord's (`/slack`)
    do as well."""
    lines = [_escaped(f"boa: {notice.text}") for notice in notices]
    text = "\n".join(lines)
    if len(text) > SLACK_CHARACTERS:
        text = f"{text[: SLACK_CHARACTERS - 1]}…"
    post(url, json.dumps({"text": text}).encode(), {})


def _escaped(text: str) -> str:
    """So that a job's name is no link and calls nobody (`<!channel>`)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Raises NotDelivered unless the answer is 2xx."""
    if not URL.fullmatch(url):
        raise NotDelivered("its URL is none: expected https://HOST/PATH")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise NotDelivered("its URL is none: expected https://HOST/PATH") from None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    sent = {
        "Content-Type": "application/json",
        "User-Agent": f"boa-constrictor/{__version__}",
        **headers,
    }
    connection = _connection(parts.scheme.lower(), host, port)
    late = threading.Event()
    try:
        connection.connect()
        held = connection.sock
        with patience(WHOLE_S, lambda: held) as late:
            connection.request("POST", path, body, sent)
            answer = connection.getresponse()
            with suppress(OSError, http.client.HTTPException):  # its status is there
                answer.read(ANSWER_BYTES)
    except TimeoutError:
        raise NotDelivered(f"no answer within {TIMEOUT_S:.0f} s") from None
    except ssl.SSLError as trouble:
        raise NotDelivered(f"TLS: {trouble.reason or 'refused'}") from None
    except (OSError, http.client.HTTPException, ValueError) as trouble:
        if late.is_set():
            raise NotDelivered(f"no whole answer within {WHOLE_S:.0f} s") from None
        why = getattr(trouble, "strerror", None) or type(trouble).__name__
        raise NotDelivered(str(why)) from None
    finally:
        connection.close()
    if not 200 <= answer.status < 300:
        moved = " (redirects are not followed)" if 300 <= answer.status < 400 else ""
        refused = answer.status in REFUSED
        raise NotDelivered(f"HTTP {answer.status}{moved}", refused=refused)


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
