"""Whom notices go to, how far they have come, and a test of whether they arrive. For admins."""

import time
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Path, Request
from starlette.concurrency import run_in_threadpool

from boa.api import notify as answers
from boa.errors import InputError
from boa.model.notices import Notice, NotifyTarget
from boa.server.context import Service, only_known_parameters
from boa.server.http.access import caller_of
from boa.server.http.errors import documented
from boa.server.notify.couriers import Send
from boa.server.notify.errors import NotDelivered

MOST_WAITING = 1000
Name = Annotated[str, Path(description="The target's name.", examples=["ops"])]


class NoSuchTarget(InputError):
    status = 404

    def __init__(self, name: str, known: list[str]) -> None:
        some = f"one of {', '.join(known)}" if known else "none: boa.yaml has no notify"
        super().__init__("target", name[:60], some)


class NotifyRoutes:
    """`send`: what a test goes out by; None: nothing is ever sent here."""

    def __init__(self, service: Service, send: Send | None) -> None:
        self._service, self._send = service, send

    def router(self) -> APIRouter:
        router = APIRouter(tags=["notify"], dependencies=[Depends(only_known_parameters)])
        add = router.add_api_route
        add("/notify", self.notify_targets, responses=documented(401, 403, 422, 503))
        add(
            "/notify/{name}/test",
            self.notify_test,
            methods=["POST"],
            responses=documented(401, 403, 404, 422, 503),
        )
        return router

    def notify_targets(self) -> answers.NotifyTargets:
        """Whom notices go to (`notify` in boa.yaml), and the newest to each that was tried.
        Needs the role admin, as does the test."""
        control = self._service.control
        return {
            "targets": [self._document(target) for target in control.notices.targets],
            "now": control.now(),
        }

    async def notify_test(self, request: Request, name: Name) -> answers.NotifyTested:
        """Send a notice now, and say whether it arrived. It is tried once, and not kept."""
        known = {target.name: target for target in self._service.control.notices.targets}
        target, send = known.get(name), self._send
        if target is None or send is None:
            raise NoSuchTarget(name, sorted(known))
        await self._service.note(caller_of(request), "notify test", name)
        notice = Notice(
            number=int(time.time() * 1000),
            target=name,
            kind="test",
            at=self._service.control.now(),
            text="this is a test: notices of boa arrive here",
        )
        try:
            await run_in_threadpool(send, target, [notice])
        except NotDelivered as why:
            return {"target": name, "delivered": False, "error": str(why)}
        return {"target": name, "delivered": True, "error": ""}

    def _document(self, target: NotifyTarget) -> answers.NotifyTarget:
        store = self._service.store
        newest = store.notices(target=target.name, limit=1, newest=True)
        waiting = store.notices(target=target.name, waiting=True, limit=MOST_WAITING)
        if newest and not newest[-1].tries:  # behind others: those tell what is wrong
            newest = [notice for notice in waiting if notice.tries] or newest
        return {
            "name": target.name,
            "kind": target.kind,
            "to": ", ".join(target.to) or _host(target.url),
            "tell": list(target.tell),
            "teams": list(target.teams),
            "owners": list(target.owners),
            "signed": target.key is not None,
            "waiting": len(waiting),
            "last": _last(newest[-1]) if newest else None,
        }


def _host(url: str) -> str:
    """A path may be as good as a password, as Slack's are."""
    return urlsplit(url).hostname or "" if url else ""


def _last(notice: Notice) -> answers.LastNotice:
    return {
        "number": notice.number,
        "kind": notice.kind,
        "at": notice.at,
        "text": notice.text,
        "state": notice.state,
        "tries": notice.tries,
        "done_at": notice.done_at,
        "error": notice.error,
    }
