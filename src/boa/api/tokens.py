"""Tokens: how they are made, and which are too easy to guess to be taken."""

import hashlib
import itertools
import math
import secrets
from collections import Counter

from boa.errors import InputError

PREFIX = "boa_"
"""So that a token that was left lying about is known for one."""
LEAST = 16
"""Characters."""
LEAST_BITS = 32.0
"""Bits of all characters together, by how often each occurs in the token itself."""
LEAST_STEPS = 5
"""Different steps from one character to the next: 0123456789abcdef has two, aaaa… one."""
MOST = 512
ACCEPTED = (
    f"{LEAST} characters or more that nobody can guess, such as BOA_TOKEN=$(openssl rand -hex 32); "
    "without any, boa serve makes one itself"
)


def new_token() -> str:
    """256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str | bytes) -> str:
    """SHA-256: enough for what is random, and nothing that a database gives away."""
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).hexdigest()


def checked_token(token: str, field: str) -> str:
    """The token, if it can stand in a header and is hard to guess. Errors never quote it."""
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise InputError(field, "…", "printable ASCII without blanks", "has other characters")
    if len(token) > MOST:
        raise InputError(field, "…", f"at most {MOST} characters", f"has {len(token):,}")
    if (weakness := weakness_of(token)) is not None:
        raise InputError(field, "…", ACCEPTED, weakness)
    return token


def weakness_of(token: str) -> str | None:
    """Why it is too easy to guess; None: it is not."""
    if len(token) < LEAST:
        return f"is too short ({len(token)} characters)"
    if _bits(token) < LEAST_BITS or _steps(token) < LEAST_STEPS or _repeats(token):
        return "is too easy to guess: it repeats itself, or counts up"
    return None


def _bits(token: str) -> float:
    counted = Counter(token).values()
    return sum(-n * math.log2(n / len(token)) for n in counted)


def _steps(token: str) -> int:
    return len({ord(b) - ord(a) for a, b in itertools.pairwise(token)})


def _repeats(token: str) -> bool:
    """Whether it is one piece, again and again: passwordpassword."""
    return token in (token + token)[1:-1]
