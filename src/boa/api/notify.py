"""Shapes of answers about notices: whom they go to, and how far they have come."""

from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12


class LastNotice(TypedDict):
    """The newest notice to a target that was tried; where none was, the newest."""

    number: int
    kind: str
    at: float
    """When it happened, in the service's time."""
    text: str
    state: str
    """waiting, delivered or given_up."""
    tries: int
    done_at: float | None
    """When it was delivered or given up, in Unix seconds."""
    error: str
    """Why the last try failed."""


class NotifyTarget(TypedDict):
    """Somewhere that notices go to, without anything secret."""

    name: str
    kind: str
    """webhook, slack or email."""
    to: str
    """The host, or the addresses; empty: only a secret says where."""
    tell: list[str]
    """Kinds of news that it is told of."""
    teams: list[str]
    owners: list[str]
    signed: bool
    """Whether webhooks are."""
    waiting: int
    """Notices that are yet to be delivered; 1,000 stands for as many or more."""
    last: LastNotice | None


class NotifyTargets(TypedDict):
    targets: list[NotifyTarget]
    now: float


class NotifyTested(TypedDict):
    """A notice that was sent to see whether it arrives."""

    target: str
    delivered: bool
    error: str
    """Why not."""
