"""Commands that leave a line in the audit log, in the same transaction as what they change."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from boa.errors import BoaError
from boa.model.access import AuditEntry, Caller
from boa.scheduler.state import Draft

_T = TypeVar("_T")
Said = Mapping[str, Any] | None
LONGEST = 200
"""Characters of a reason that are kept."""


def entry(
    by: Caller,
    what: str,
    subject: str = "",
    *,
    before: Said = None,
    after: Said = None,
    result: str = "done",
) -> AuditEntry:
    """A line of now. Values of secrets and tokens have no place in it."""
    return AuditEntry(
        at=time.time(),
        who=by.name,
        role=by.role,
        address=by.address,
        what=what,
        subject=subject,
        before=before,
        after=after,
        result=result[:LONGEST],
    )


def audited(
    by: Caller | None,
    what: str,
    apply: Callable[[Draft], _T],
    *,
    subject: str | Callable[[_T], str] = "",
    look: Callable[[Draft], Said] = lambda draft: None,
    made: Callable[[_T], Said] | None = None,
) -> Callable[[Draft], _T]:
    """The same command, written down with it; None: nobody asked, as in tests.

    `look`: what it is about, before and after; `made`: instead, what has come of it. One that is
    refused leaves a line too.
    """
    if by is None:
        return apply

    def change(draft: Draft) -> _T:
        before = look(draft)
        try:
            result = apply(draft)
        except BoaError as problem:
            named = subject if isinstance(subject, str) else ""
            line = entry(by, what, named, before=before, after=before, result=str(problem))
            draft.changes.audit.append(line)
            raise
        after = look(draft) if made is None else made(result)
        named = subject if isinstance(subject, str) else subject(result)
        draft.changes.audit.append(entry(by, what, named, before=before, after=after))
        return result

    return change
