"""Bill and JCT that the service will reach where nodes are billed: options, and the simulating."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from boa.cli import parsers, shell
from boa.cli.console import working
from boa.errors import BudgetTooSmall, UsageError
from boa.units import Seconds, UsdPerHour

if TYPE_CHECKING:
    from boa.model.workload import Workload
    from boa.plots.words import Money
    from boa.sim.foretold import Foretold


LONGEST_S: Seconds = 86_400.0
"""The longer boots take, the more jobs are there at once and the slower is the simulation: beyond,
it would not seem to end."""
_EXPECTED = f"a number of seconds from 0 to {LONGEST_S:g} (a day)"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTimes:
    """Times of nodes, for what will be billed."""

    boot_s: Annotated[
        Seconds | None,
        shell.Option(
            "--boot-s",
            metavar="S",
            parser=parsers.between("--boot-s", 0, LONGEST_S, _EXPECTED),
            help="With --billing node: seconds from renting a node until jobs can start on it. "
            "Adds the bill and the JCT that the service will reach, foretold by simulation.",
        ),
    ] = None
    reclaim_s: Annotated[
        Seconds,
        shell.Option(
            "--reclaim-s",
            metavar="S",
            parser=parsers.between("--reclaim-s", 0, LONGEST_S, _EXPECTED),
            help="With --boot-s: seconds from giving a node back until it costs nothing.",
        ),
    ] = 0.0

    def check(self, billing: str) -> None:
        if self.boot_s is not None and billing != "node":
            raise UsageError("--boot-s needs --billing node: by the GPU, boots cost nothing.")
        if self.reclaim_s and self.boot_s is None:
            raise UsageError("--reclaim-s needs --boot-s.")

    def foretell(
        self, workload: "Workload", budgets: Sequence[UsdPerHour]
    ) -> "dict[UsdPerHour, Foretold]":
        """By budget; empty without a boot time. A budget that no draw kept up with is left out."""
        if self.boot_s is None:
            return {}
        from boa.sim.foretold import DRAWS, foretold

        found = {}
        with working("simulating the service") as progress:
            for n, budget in enumerate(budgets):
                progress(n * DRAWS, len(budgets) * DRAWS)
                try:
                    found[budget] = foretold(
                        workload,
                        budget,
                        boot_s=self.boot_s,
                        reclaim_s=self.reclaim_s,
                        progress=lambda done, n=n: progress(  # type: ignore[misc]
                            n * DRAWS + done, len(budgets) * DRAWS
                        ),
                    )
                except BudgetTooSmall:
                    if len(budgets) == 1:
                        raise
        return found


def bill_words(found: "Foretold", money: "Money") -> str:
    return f"{money.rate(found.bill.mean)} ± {money.rate(found.bill.error)}"


def jct_words(found: "Foretold") -> str:
    from boa.amounts import duration

    return f"{duration(found.jct.mean)} ± {duration(found.jct.error)}"
