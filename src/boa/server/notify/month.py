"""The month's forecast, looked at now and then for who wants to be told."""

import threading
from contextlib import suppress

from boa.errors import BoaError
from boa.model.notices import NotifyTarget
from boa.runtime.snapshot import Control
from boa.server.render.charges import this_month
from boa.server.render.documents import forecast
from boa.store.base import Store
from boa.units import Seconds

EVERY_S: Seconds = 600.0
"""Seconds of the wall: a month's charges take a moment to read."""


class MonthWatch:
    def __init__(self, control: Control, store: Store) -> None:
        self._control, self._store = control, store
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, targets: tuple[NotifyTarget, ...]) -> None:
        if any(target.wants("forecast") for target in targets):
            self._thread = threading.Thread(target=self._run, name="boa-notify-month", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(0.5)

    def look(self) -> None:
        """Tell the control loop what the month is going to cost."""
        snapshot = self._control.snapshot
        month = this_month(self._store, snapshot.now)
        self._control.foretell_month(forecast(month, snapshot.money))

    def _run(self) -> None:
        while not self._closing.wait(EVERY_S):
            with suppress(BoaError):  # the next look will do
                self.look()
