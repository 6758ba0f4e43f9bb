"""Tokens that a run proves itself with when it reports."""

import hashlib
import hmac

from boa.model.cluster import JobId


def report_token(secret: bytes, job: JobId, attempt: int) -> str:
    """HMAC-SHA256 of JOB/ATTEMPT: nothing to store, and of no use to any other run."""
    return hmac.new(secret, f"{job}/{attempt}".encode(), hashlib.sha256).hexdigest()
