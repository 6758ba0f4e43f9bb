"""Questions about a month: its statement and what was saved; one method each, as in `api`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from boa.client.wire import Wire

if TYPE_CHECKING:
    from boa.api import reports as answers


class ReportQuestions:
    _wire: Wire

    def statement(self, month: str | None = None) -> answers.Statement:
        """A month's bill, and who spent what; `month`: YYYY-MM, the present one by default."""
        found = self._wire.ask("GET", "statement", {"month": month})
        return cast("answers.Statement", found)

    def saved(
        self, month: str | None = None, *, width: int | None = None, gpu_type: str | None = None
    ) -> answers.Saved:
        """Savings of a month, as far as somebody has asked for them before."""
        asked = {"month": month, "width": width, "gpu_type": gpu_type}
        return cast("answers.Saved", self._wire.ask("GET", "saved", asked))

    def ask_saved(
        self, month: str | None = None, *, width: int | None = None, gpu_type: str | None = None
    ) -> answers.Saved:
        """Begin the simulation that says it, unless it was begun before."""
        asked = {"month": month, "width": width, "gpu_type": gpu_type}
        body = {name: value for name, value in asked.items() if value is not None}
        return cast("answers.Saved", self._wire.ask("POST", "saved", body=body))

    def statement_file(self, format: Literal["csv", "html"], month: str | None = None) -> str:
        """The same as text: for a spreadsheet, or a page to print."""
        with self._wire.stream("statement", {"month": month, "format": format}) as answer:
            return answer.read().decode("utf-8")
