"""The role that each request needs, in one place: what is not named here and changes anything is
for admins. Whose job it is, where that counts, is looked at where the job is."""

import re
from collections.abc import Sequence

from boa.model.access import Role

RULES: Sequence[tuple[str, str, Role, str]] = (
    ("GET", r"/api/v1/tokens(/.*)?", "admin", "looking at tokens"),
    ("GET", r"/api/v1/audit", "admin", "reading the audit log"),
    ("GET", r"/api/v1/notify", "admin", "looking at whom notices go to"),
    ("POST", r"/api/v1/notify/[^/]+/test", "admin", "sending a test notice"),
    ("GET", r"/api/v1/jobs/[^/]+/logs(/runs)?", "member", "reading logs"),
    ("GET", r"/api/v1/jobs/[^/]+/artifacts(/file)?", "member", "reading artifacts"),
    ("GET", r"/api/v1/packages(/[^/]+)?", "member", "looking at packages"),
    ("PUT", r"/api/v1/packages/[^/]+", "member", "uploading packages"),
    ("POST", r"/api/v1/jobs(/batch)?", "member", "submitting jobs"),
    ("POST", r"/api/v1/jobs/estimate", "member", "estimating jobs"),
    ("POST", r"/api/v1/jobs/terms", "member", "asking for a job's terms"),
    ("POST", r"/api/v1/jobs/[^/]+/stop", "member", "stopping jobs"),
    ("POST", r"/api/v1/jobs/[^/]+/(pause|resume)", "member", "pausing jobs"),
    ("POST", r"/api/v1/jobs/[^/]+/resubmit", "member", "submitting jobs"),
    ("PATCH", r"/api/v1/jobs/[^/]+", "member", "changing jobs"),
    ("POST", r"/api/v1/sweeps", "member", "submitting jobs"),
    ("POST", r"/api/v1/sweeps/[^/]+/stop", "member", "stopping jobs"),
    ("POST", r"/api/v1/secrets", "member", "setting secrets"),
    ("DELETE", r"/api/v1/secrets/[^/]+", "member", "removing secrets"),
    ("POST", r"/api/v1/what-if(/[^/]+/stop)?", "member", "asking for simulations"),
    ("POST", r"/api/v1/saved", "member", "asking for simulations"),
    ("POST", r"/api/v1/classes/[^/]+/retry", "member", "having a class tried again"),
    ("PUT", r"/api/v1/budget", "admin", "changing the budget"),
    ("POST", r"/api/v1/tokens(/.*)?", "admin", "changing tokens"),
)
"""(method, path, role, what it is)"""
_COMPILED = [(method, re.compile(path), role, what) for method, path, role, what in RULES]
READING = ("GET", "HEAD", "OPTIONS")


def needed(method: str, path: str) -> tuple[Role, str]:
    """The least role, and what it is needed for."""
    for of, pattern, role, what in _COMPILED:
        if of == ("GET" if method == "HEAD" else method) and pattern.fullmatch(path):
            return role, what
    if method in READING:
        return "viewer", "reading"
    return "admin", f"{method} {path[:60]}"
