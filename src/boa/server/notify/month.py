"""The month's spend and forecast, looked at now and then for who wants to be told."""

import threading
from contextlib import suppress

from boa.errors import BoaError
from boa.model.notices import NotifyTarget
from boa.runtime.snapshot import Control
from boa.server.render.charges import this_month
from boa.server.render.statements import month_spent
from boa.store.base import Store
from boa.units import Seconds

EVERY_S: Seconds = 600.0
"""Seconds of the service's time …"""
LEAST_S: Seconds = 5.0
"""… and of the wall at least: a month's charges take a moment to read."""


class MonthWatch:
    """`speed`: seconds of the service's time in one of the wall's."""

    def __init__(self, control: Control, store: Store, speed: float = 1.0) -> None:
        self._control, self._store = control, store
        self._every_s = max(EVERY_S / speed, LEAST_S)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, targets: tuple[NotifyTarget, ...]) -> None:
        if any(target.wants("forecast") or target.wants("spent") for target in targets):
            self._thread = threading.Thread(target=self._run, name="boa-notify-month", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(0.5)

    def look(self) -> None:
        """Tell the control loop what the month has cost, and is going to."""
        snapshot = self._control.snapshot
        spent = month_spent(self._store, snapshot.money, snapshot.now)
        if any(one.spent > 0 for one in spent):
            self._control.tell_spent(spent)
        month = this_month(self._store, snapshot.now)
        if month.amount is not None:
            self._control.foretell_month(month.amount)

    def _run(self) -> None:
        while not self._closing.wait(self._every_s):
            with suppress(BoaError):  # the next look will do
                self.look()
