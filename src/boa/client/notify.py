"""Questions about notices: one method each, as in `api`. For admins."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from boa.client.wire import Wire

if TYPE_CHECKING:
    from boa.api import notify as answers


class NotifyQuestions:
    _wire: Wire

    def notify_targets(self) -> list[answers.NotifyTarget]:
        """Whom notices go to, and how far the newest to each has come."""
        return cast("answers.NotifyTargets", self._wire.ask("GET", "notify"))["targets"]

    def notify_test(self, target: str) -> answers.NotifyTested:
        """Send a notice to see whether it arrives; `error` says why not."""
        path = f"notify/{quote(target, safe='')}/test"
        return cast("answers.NotifyTested", self._wire.ask("POST", path))
