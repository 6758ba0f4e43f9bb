"""Couriers: a thread for each target that takes what waits for it out of the store and delivers it.

At least once: a notice is written with what it tells of, and marked delivered after it was. What
fails is tried again, less and less often, for about three days. Nobody waits for a courier, neither
the control loop nor other targets.
"""

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from dataclasses import replace
from typing import Protocol

from boa.backoff import doubled
from boa.engines.processes.masking import masked
from boa.errors import BoaError, InputError
from boa.model.notices import Notice, NotifyTarget, SecretFrom
from boa.plain_file import read_plain
from boa.private_files import OTHERS
from boa.runtime.vault import Vault
from boa.server.notify.errors import NotDelivered
from boa.server.notify.mail import message, send_mail
from boa.server.notify.post import post_slack, post_webhook
from boa.store.base import Store, StoreTrouble
from boa.units import Seconds

FIRST_WAIT_S: Seconds = 10.0
LONGEST_WAIT_S: Seconds = 3600.0
MOST_TRIES = 80
"""With an hour between the last ones: three days."""
AT_ONCE = 50
"""Notices that share one e-mail or Slack message."""
MOST_READ = 1000
"""Notices that are taken out of the store at a time: refused ones must not hide others."""
LOOK_S: Seconds = 60.0
"""So often a courier looks by itself."""
SETTLE_S: Seconds = 10.0
TOGETHER_S: Seconds = 1.0
"""Deliveries within it are written down together: thousands of ends would else each wait for a step
of the control loop. Who is killed meanwhile sends that much again."""
MOST_FORGOTTEN = 10_000
_SECRET_BYTES = 64 * 1024
_log = logging.getLogger("boa.notify")
Send = Callable[[NotifyTarget, Sequence[Notice]], None]
"""Deliver these to a target, together or not at all; raises NotDelivered."""


class Settling(Protocol):
    def settle_notices(self, notices: Sequence[Notice]) -> "Future[None]": ...


class Sender:
    """Messages as they are sent, with the secrets of targets.

    `service`: a name that no other service has."""

    def __init__(self, vault: Vault, service: str) -> None:
        self._vault, self._service = vault, service

    def __call__(self, target: NotifyTarget, notices: Sequence[Notice]) -> None:
        used: list[str] = []

        def secret(place: SecretFrom | None) -> str:
            value = "" if place is None else secret_of(place, self._vault)
            used.append(value)
            return value

        try:
            if target.kind == "email":
                made = message(target, notices, self._service)
                send_mail(target, secret(target.password), made)
                return
            url = target.url or secret(target.secret_url)
            if target.kind == "slack":
                post_slack(url, notices)
                return
            key = secret(target.key)
            for notice in notices:
                post_webhook(url, key, notice, self._service)
        except NotDelivered as why:
            shown = masked(str(why), [value for value in used if value])
            raise NotDelivered(shown, refused=why.refused) from None


def secret_of(place: SecretFrom, vault: Vault) -> str:
    """Read anew each time, so that it can be changed. Raises NotDelivered."""
    try:
        value = vault.of_service(place.name) if place.file is None else _in_file(place)
    except BoaError as missing:
        raise NotDelivered(str(missing)) from None
    if not value:
        raise NotDelivered("its secret is empty")
    return value


def _in_file(place: SecretFrom) -> str:
    assert place.file is not None
    try:
        found = read_plain(place.file, most=_SECRET_BYTES, follow=True)
        mode = stat.S_IMODE(os.stat(place.file).st_mode)
    except OSError as trouble:
        raise NotDelivered(f"{place.file} cannot be read: {trouble.strerror}") from None
    if mode & OTHERS:
        raise NotDelivered(f"{place.file} is open to others ({mode:04o}): chmod 600 it")
    return found.decode("utf-8", "replace").strip()


class Courier:
    """One target's. `turn` is all that its thread does, again and again."""

    def __init__(
        self,
        target: NotifyTarget,
        store: Store,
        control: Settling,
        send: Send,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.target = target
        self._store, self._control, self._send, self._clock = store, control, send, clock
        self._failing = 0
        """Turns in a row in which nothing could be delivered."""
        self._settled_at = clock()
        self._unsettled: dict[int, Notice] = {}
        """Delivered, but not yet written down: to be sent no second time."""

    @property
    def is_failing(self) -> bool:
        """Whether the last try failed: news are no reason to try sooner."""
        return self._failing > 0

    def turn(self) -> Seconds:
        """Deliver what is due. Seconds until it is to be looked at again."""
        self._settle()
        waiting = self._store.notices(target=self.target.name, waiting=True, limit=MOST_READ)
        waiting = [notice for notice in waiting if notice.number not in self._unsettled]
        due = [notice for notice in waiting if notice.due_at <= self._clock()]
        if not due:
            soonest = min((notice.due_at for notice in waiting), default=None)
            return LOOK_S if soonest is None else max(soonest - self._clock(), 0.0)
        some = due[:AT_ONCE]
        groups = [[one] for one in some] if self.target.kind == "webhook" else [some]
        for group in groups:
            if not self._deliver(group):
                self._failing += 1
                self._settle()
                return doubled(FIRST_WAIT_S, self._failing, LONGEST_WAIT_S)
            self._failing = 0
            if self._clock() - self._settled_at >= TOGETHER_S:
                self._settle()
        self._settle()
        return 0.0

    def _deliver(self, group: Sequence[Notice]) -> bool:
        """Whether the target is there. Of a group that it refuses, which is named by jobs as their
        users like, each is sent by itself: one that nobody takes must not keep the others."""
        try:
            self._send(self.target, group)
        except NotDelivered as why:
            if why.refused and len(group) > 1:
                return all(self._deliver([one]) for one in group)
            self._note(self._failed(notice, str(why)) for notice in group)
            return why.refused
        now = self._clock()
        self._note(
            replace(one, state="delivered", tries=one.tries + 1, done_at=now, error="")
            for one in group
        )
        return True

    def _note(self, notices: Iterable[Notice]) -> None:
        self._unsettled |= {notice.number: notice for notice in notices}

    def _failed(self, notice: Notice, error: str) -> Notice:
        tries, now = notice.tries + 1, self._clock()
        _log.warning("notice %d to %s: %s", notice.number, self.target.name, error)
        if tries >= MOST_TRIES:
            return replace(notice, state="given_up", tries=tries, done_at=now, error=error)
        wait = doubled(FIRST_WAIT_S, tries, LONGEST_WAIT_S)
        return replace(notice, tries=tries, due_at=now + wait, error=error)

    def _settle(self) -> None:
        """Write down how far they are; what cannot be written now is, the next time."""
        self._settled_at = self._clock()
        if not self._unsettled:
            return
        try:
            self._control.settle_notices(list(self._unsettled.values())).result(SETTLE_S)
        except (BoaError, TooLate) as trouble:
            _log.warning("notices to %s are not written down yet: %s", self.target.name, trouble)
            return
        self._unsettled.clear()


class Couriers:
    """All of them, and their threads."""

    def __init__(
        self, targets: Sequence[NotifyTarget], store: Store, control: Settling, send: Send
    ) -> None:
        self.send, self._store, self._control = send, store, control
        self.targets: Mapping[str, NotifyTarget] = {target.name: target for target in targets}
        self._couriers = [Courier(target, store, control, send) for target in targets]
        self._news = [threading.Event() for _ in targets]
        self._closing = False
        self._threads = [
            threading.Thread(
                target=self._run, args=pair, name=f"boa-notify-{pair[0].target.name}", daemon=True
            )
            for pair in zip(self._couriers, self._news, strict=True)
        ]

    def start(self) -> None:
        self._forget_others()
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """There is something new."""
        for news in self._news:
            news.set()

    def close(self) -> None:
        """Soon: whatever is on its way is sent again by the next service, if it must."""
        self._closing = True
        self.wake()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(0.5)

    def _forget_others(self) -> None:
        """Notices for targets that boa.yaml has no more will never be delivered."""
        try:
            waiting = self._store.notices(waiting=True, limit=MOST_FORGOTTEN)
        except StoreTrouble:
            return  # at the next start
        now = time.time()
        lost = [
            replace(
                notice, state="given_up", done_at=now, error="its target is in boa.yaml no more"
            )
            for notice in waiting
            if notice.target not in self.targets
        ]
        if lost:
            self._control.settle_notices(lost)

    def _run(self, courier: Courier, news: threading.Event) -> None:
        until = 0.0
        while not self._closing:
            while (left := until - time.monotonic()) > 0 and not self._closing:
                woken = news.wait(left)
                news.clear()
                if woken and not courier.is_failing:
                    break
            if self._closing:
                return
            try:
                until = time.monotonic() + courier.turn()
            except StoreTrouble as trouble:
                _log.warning("notices to %s: %s", courier.target.name, trouble)
                until = time.monotonic() + LOOK_S
            except Exception as bug:  # one target's bug is to end nothing else
                _log.error("notices to %s: %s: %s", courier.target.name, type(bug).__name__, bug)
                until = time.monotonic() + LOOK_S


def check_files(targets: Sequence[NotifyTarget]) -> None:
    """Refuse files that cannot be read, before anything is begun."""
    for target in targets:
        places = {"url": target.secret_url, "key": target.key, "password": target.password}
        for what, place in places.items():
            if place is not None and place.file is not None:
                try:
                    _in_file(place)
                except NotDelivered as wrong:
                    field = f"notify.{target.name}.{what}_file"
                    expected = "a file of the service's own, closed to others (0600)"
                    raise InputError(field, str(place.file), expected, str(wrong)) from None
