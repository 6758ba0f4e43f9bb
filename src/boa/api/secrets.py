"""Secrets, as the API tells of them: never their values."""

from typing_extensions import TypedDict


class Secret(TypedDict):
    """A secret, without its value."""

    name: str
    set_at: float
    set_by: str
    """Name of the token that it was set with; empty where there was none."""
    jobs: int
    """Jobs that use it and have not ended."""


class SecretAnswer(TypedDict):
    secret: Secret


class SecretList(TypedDict):
    secrets: list[Secret]
    now: float
