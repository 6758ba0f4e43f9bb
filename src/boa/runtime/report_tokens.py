"""Tokens that a run proves itself with when it reports."""

import hmac
import time

from boa.model.cluster import JobId
from boa.units import Seconds

LONGEST_TIME = 12
"""Digits."""
LIFE_S: Seconds = 7 * 86_400.0
"""How long one is good, by the wall. The answer to a report brings the next one when half of that
has passed, as long as the run is there; who does not take it can report for so long."""


def report_token(secret: bytes, job: JobId, attempt: int, until: int | None = None) -> str:
    """UNTIL.HMAC-SHA256 of JOB/ATTEMPT/UNTIL: nothing to store, of no use to any other run, nor
    after its time (Unix seconds; by default as long as they live)."""
    until = int(time.time() + LIFE_S) if until is None else until
    return f"{until}.{_sign(secret, f'{job}/{attempt}/{until}')}"


def good_until(secret: bytes, job: JobId, attempt: int, token: bytes) -> Seconds:
    """Until when it is good; 0: it is not this run's. Its end may have passed."""
    until, _, _ = token.partition(b".")
    if not until.isdigit() or len(until) > LONGEST_TIME:
        return 0.0
    expected = report_token(secret, job, attempt, int(until)).encode()
    return float(until) if hmac.compare_digest(token, expected) else 0.0


def is_endless(secret: bytes, job: JobId, attempt: int, token: bytes) -> bool:
    """Whether it is one of those that earlier versions made, which have no end."""
    return hmac.compare_digest(token, _sign(secret, f"{job}/{attempt}").encode())


def _sign(secret: bytes, text: str) -> str:
    return hmac.digest(secret, text.encode(), "sha256").hex()
