"""Messages to the loop: from users, from the engine, from the cloud."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias

from boa.errors import BoaError
from boa.scheduler.observe.messages import Said
from boa.scheduler.refusals import NotNow
from boa.scheduler.state import Draft

Reply: TypeAlias = Callable[[NotNow | None], None]
"""Called with None when the change is stored, else with why it is not."""


@dataclass(frozen=True, slots=True)
class AwaitedCommand:
    """Somebody waits for the answer."""

    apply: Callable[[Draft], Any]
    future: "Future[Any]"

    def take(self, draft: Draft) -> Reply:
        """Change the draft; the answer is given once that is stored."""
        try:
            answer = self.apply(draft)
        except BoaError as problem:
            self.future.set_exception(problem)
            return lambda _: None
        except Exception as bug:  # who asked must not wait for an answer that never comes
            said = f"nothing was changed: unexpected {type(bug).__name__}: {bug}"
            self.future.set_exception(NotNow(said))
            return lambda _: None
        return lambda problem: (
            self.future.set_result(answer)
            if problem is None
            else self.future.set_exception(problem)
        )

    def refuse(self, problem: NotNow | None) -> None:
        """Refuse a request that was never looked at."""
        self.future.set_exception(problem or NotNow("nothing was changed"))


Message: TypeAlias = AwaitedCommand | Said
