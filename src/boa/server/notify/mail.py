"""E-mail over SMTP: one message for all that waits."""

import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate

from boa.model.notices import Notice, NotifyTarget
from boa.server.notify.errors import NotDelivered
from boa.server.notify.patience import patience
from boa.units import Seconds

TIMEOUT_S: Seconds = 20.0
WHOLE_S: Seconds = 60.0
"""For all of a mail, however slowly the server speaks."""
PORTS = {"starttls": 587, "tls": 465, "none": 25}
SUBJECT_CHARACTERS = 150
SHOWN_CHARACTERS = 200


def message(target: NotifyTarget, notices: Sequence[Notice], service: str) -> EmailMessage:
    """The same notices give the same Message-ID: a mail that comes twice is one to most readers."""
    made = EmailMessage()
    made["From"], made["To"] = target.sender, ", ".join(target.to)
    made["Subject"] = _subject(notices)
    made["Date"] = formatdate()
    numbers = f"{notices[0].name}-{notices[-1].name}"
    domain = target.sender.rpartition("@")[2]
    made["Message-ID"] = f"<boa.{numbers}.{service}.{target.name}@{domain}>"
    made["Auto-Submitted"] = "auto-generated"  # or whoever is away answers it
    made.set_content("\n".join(_plain(notice.text) for notice in notices) + "\n")
    return made


def _subject(notices: Sequence[Notice]) -> str:
    more = f" (and {len(notices) - 1:,} more)" if len(notices) > 1 else ""
    first = _plain(notices[0].text)
    room = SUBJECT_CHARACTERS - len(more)
    cut = first if len(first) <= room else f"{first[: room - 1]}…"
    return f"[boa] {cut}{more}"


def _plain(text: str) -> str:
    """On one line: a line break would begin another header."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def send_mail(target: NotifyTarget, password: str, made: EmailMessage) -> None:
    """Raises NotDelivered where the server does not take it for anybody."""
    host, port = _server(target)
    connected: list[smtplib.SMTP] = []

    def held() -> object:
        return getattr(connected[0], "sock", None) if connected else None

    with patience(WHOLE_S, held) as late:
        try:
            _speak(target, password, made, (host, port), connected)
        except NotDelivered:
            if late.is_set():
                raise NotDelivered(f"the mail was not taken within {WHOLE_S:.0f} s") from None
            raise


def _speak(
    target: NotifyTarget,
    password: str,
    made: EmailMessage,
    address: tuple[str, int],
    connected: list[smtplib.SMTP],
) -> None:
    """`connected`: gets the connection before it is made."""
    context = ssl.create_default_context()
    try:
        server = _connect(target, address, context, connected)
        with server:
            if target.security == "starttls":
                server.starttls(context=context)
            if target.user:
                server.login(target.user, password)
            server.send_message(made)
    except smtplib.SMTPAuthenticationError as trouble:
        code = trouble.smtp_code
        raise NotDelivered(f"the mail server refuses the user or password ({code})") from None
    except smtplib.SMTPRecipientsRefused as trouble:
        code, said = next(iter(trouble.recipients.values()))
        raise NotDelivered(
            f"the mail server refuses all addresses ({code} {_said(said)})"
        ) from None
    except smtplib.SMTPResponseException as trouble:
        what = _said(trouble.smtp_error)
        refused = isinstance(trouble, smtplib.SMTPDataError) and trouble.smtp_code >= 500
        raise NotDelivered(
            f"the mail server says {trouble.smtp_code} {what}", refused=refused
        ) from None
    except smtplib.SMTPNotSupportedError:
        raise NotDelivered(f"the mail server has no {target.security}, or no sign-in") from None
    except TimeoutError:
        raise NotDelivered(f"no answer within {TIMEOUT_S:.0f} s") from None
    except ssl.SSLError as trouble:
        raise NotDelivered(f"TLS: {trouble.reason or 'refused'}") from None
    except (OSError, smtplib.SMTPException, ValueError) as trouble:
        why = getattr(trouble, "strerror", None) or type(trouble).__name__
        raise NotDelivered(str(why)) from None


def _connect(
    target: NotifyTarget,
    address: tuple[str, int],
    context: ssl.SSLContext,
    connected: list[smtplib.SMTP],
) -> smtplib.SMTP:
    """Made known before it is there: its first words may take for ever."""
    host, port = address
    if target.security == "tls":
        secure = smtplib.SMTP_SSL.__new__(smtplib.SMTP_SSL)
        connected.append(secure)
        smtplib.SMTP_SSL.__init__(secure, host, port, timeout=TIMEOUT_S, context=context)
        return secure
    plain = smtplib.SMTP.__new__(smtplib.SMTP)
    connected.append(plain)
    smtplib.SMTP.__init__(plain, host, port, timeout=TIMEOUT_S)
    return plain


def _server(target: NotifyTarget) -> tuple[str, int]:
    host, colon, port = target.smtp.rpartition(":")
    if not colon or target.smtp.endswith("]"):
        host, port = target.smtp, ""
    return host.strip("[]"), int(port) if port else PORTS[target.security]


def _said(words: bytes | str) -> str:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return _plain(text)[:SHOWN_CHARACTERS]
