"""Tables of the demo: jobs while they run, then planned against measured."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from boa.amounts import dollars, duration, percent, rate
from boa.api.answers import Job
from boa.cli.console import console, note
from boa.cli.tables import Table
from boa.model.job import ENDED
from boa.plots.live import DemoOutcome

if TYPE_CHECKING:
    from rich.table import Table as LiveTable

    from boa.cli.live.demo_run import Demo

SHOWN = 18
QUIET_S = 10.0
"""Where there is no terminal: a line every so often."""


class Watching:
    """Called with all jobs, as often as one likes."""

    def __init__(self, story: "Demo", *, quiet: bool) -> None:
        from rich.console import Console
        from rich.live import Live

        self._story = story
        self._said = 0.0
        screen = Console(highlight=False)
        tty = not quiet and screen.is_terminal and sys.stdout.isatty()
        self._live = Live(console=screen, refresh_per_second=4) if tty else None

    def __enter__(self) -> Self:
        note("boa serve is up; jobs arrive for 45 seconds, the last ends after about 80")
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, jobs: Sequence[Job]) -> None:
        if self._live is not None:
            self._live.update(self._table(jobs))
        elif time.monotonic() - self._said >= QUIET_S:
            self._said = time.monotonic()
            states = Counter(job["state"] for job in jobs)
            gpus = sum(job["width"] for job in jobs)
            told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
            note(f"jobs: {told or 'none yet'}; {gpus} GPUs in use")

    def _table(self, jobs: Sequence[Job]) -> "LiveTable":
        from rich.table import Table as LiveTable

        money = self._story.client.cost()
        table = LiveTable(
            title=f"budget {rate(money['budget_per_hour'])}, spending "
            f"{rate(money['spend_now_per_hour'])}, {dollars(money['total_usd'])} so far",
            title_justify="left",
            box=None,
            pad_edge=False,
        )
        for column in ("job", "class", "state", "GPUs", "epoch", "rescalings", "cost"):
            table.add_column(column, justify="right" if column in ("GPUs", "cost") else "left")
        active = [job for job in jobs if job["state"] not in ENDED]
        ended = [job for job in jobs if job["state"] in ENDED]
        for job in [*active, *ended][:SHOWN]:
            width = f"{job['width']}×{job['gpu_type']}" if job["width"] else ""
            style = "dim" if job["state"] in ENDED else ""
            table.add_row(
                job["name"],
                job["class"],
                job["state"],
                width,
                str(job["epoch"] + 1),
                str(job["rescalings"]),
                dollars(job["cost_usd"]),
                style=style,
            )
        return table


def print_outcome(outcome: DemoOutcome) -> None:
    out = console()
    table = Table()
    for column in ("class", "jobs", "JCT planned", "measured", "cost planned", "measured"):
        table.add_column(column, justify="left" if column == "class" else "right")
    for c in outcome.classes:
        table.add_row(
            c.name,
            str(c.jobs),
            duration(c.planned_jct),
            f"{duration(c.jct)} ({_off(c.jct, c.planned_jct)})",
            dollars(c.planned_cost),
            f"{dollars(c.cost)} ({_off(c.cost, c.planned_cost)})",
        )
    planned, measured = outcome.mean("planned_jct"), outcome.mean("jct")
    paid, promised = outcome.per_hour("cost"), outcome.per_hour("planned_cost")
    out.print()
    out.print(table)
    cost = outcome.cost
    out.print(
        f"\naverage JCT   {duration(measured)}, planned {duration(planned)} "
        f"({_off(measured, planned)})\n"
        f"spend on jobs {rate(paid)}, planned {rate(promised)} ({_off(paid, promised)})\n"
        f"the bill      {dollars(cost['total_usd'])}: jobs {dollars(cost['jobs_usd'])}, idle "
        f"{dollars(cost['idle_usd'])}, booting {dollars(cost['provisioning_usd'])}\n"
        f"real training {outcome.real['state']}, loss {_loss(outcome)}, "
        f"{outcome.real['attempts']} starts"
    )


def _loss(outcome: DemoOutcome) -> str:
    loss = outcome.real["loss"]
    return "unknown" if loss is None else f"{loss:.3g}"


def _off(measured: float, planned: float) -> str:
    if not planned:
        return "–"
    off = measured / planned - 1
    return f"{'+' if off >= 0 else '−'}{percent(abs(off))}"
