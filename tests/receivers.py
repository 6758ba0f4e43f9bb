"""Real servers on loopback that notices are sent to: one speaks HTTP, one SMTP."""

import base64
import contextlib
import socketserver
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Posts:
    """Requests that a web server got, and what it answers."""

    port: int = 0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    """Path, headers by lower-case name, body."""
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?x=1"


@contextlib.contextmanager
def web_server() -> Iterator[Posts]:
    posts = Posts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            names = {name.lower(): value for name, value in self.headers.items()}
            posts.got.append((self.path, names, body))
            self.send_response(posts.status)
            for name, value in posts.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()
            posts.arrived.release()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    posts.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield posts
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Mails:
    """Mails that a mail server got, and how it treats who sends them."""

    port: int = 0
    tls: ssl.SSLContext | None = None
    """For STARTTLS; None: it has none."""
    user: str = ""
    password: str = ""
    refuse: str = ""
    """What it answers to RCPT instead of taking it, such as `550 no such user`."""
    got: list[EmailMessage] = field(default_factory=list)
    to: list[list[str]] = field(default_factory=list)
    secured: list[bool] = field(default_factory=list)


@contextlib.contextmanager
def mail_server(**settings: object) -> Iterator[Mails]:
    mails = Mails(**settings)  # type: ignore[arg-type]

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
                _converse(self, mails, opened)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address, daemon_threads = True, True

    server = Server(("127.0.0.1", 0), Handler)
    mails.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield mails
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _converse(
    handler: socketserver.StreamRequestHandler, mails: Mails, opened: contextlib.ExitStack
) -> None:
    """RFC 5321, as far as a client that only sends needs it; STARTTLS and AUTH PLAIN."""
    stream = opened.enter_context(handler.request.makefile("rwb"))
    secure, signed_in = False, not mails.user
    to: list[str] = []

    def say(text: str) -> None:
        stream.write(text.encode() + b"\r\n")
        stream.flush()

    say("220 test ESMTP")
    while line := stream.readline():
        words = line.decode("utf-8", "replace").strip()
        verb = words.split(" ", 1)[0].upper()
        if verb == "EHLO":
            offers = (["STARTTLS"] if mails.tls and not secure else []) + (
                ["AUTH PLAIN"] if mails.user else []
            )
            lines = ["test", *offers]
            for n, offer in enumerate(lines):
                say(f"250{'-' if n < len(lines) - 1 else ' '}{offer}")
        elif verb == "STARTTLS" and mails.tls:
            say("220 go ahead")
            secured = opened.enter_context(mails.tls.wrap_socket(handler.request, server_side=True))
            stream, secure = opened.enter_context(secured.makefile("rwb")), True
        elif verb == "AUTH":
            given = base64.b64decode(words.split(" ")[2]).split(b"\0")
            signed_in = given[1:] == [mails.user.encode(), mails.password.encode()]
            say("235 welcome" if signed_in else "535 5.7.8 no")
        elif verb in ("MAIL", "RSET", "NOOP"):
            to = []
            say("250 ok" if signed_in else "530 sign in first")
        elif verb == "RCPT":
            to.append(words[words.index("<") + 1 : words.index(">")])
            say(mails.refuse or "250 ok")
        elif verb == "DATA":
            say("354 go on")
            body = b""
            while (part := stream.readline()) != b".\r\n":
                body += part.removeprefix(b".") if part.startswith(b"..") else part
            found = message_from_bytes(body, policy=policy.default)
            mails.got.append(found)
            mails.to.append(to)
            mails.secured.append(secure)
            say("250 taken")
        elif verb == "QUIT":
            say("221 bye")
            return
        else:
            say("502 not here")
