"""How long a command takes to answer, beside `python -c pass`: ratios within one run.

Each round runs every command a few times in turn and keeps the best of each; a figure is the
median over the rounds. Bytecode is there, as after an installation. A real service answers.

.venv/bin/python bench/shell.py [--rounds 7] [--best-of 3] [--boa "COMMAND"] [--json FILE]
"""

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from _table import Measured, show, write
from boa.client.spawn import OwnService

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "newtrace-t4.yaml"
BUDGET = "150"
NOTHING = "python -c pass"
TARGETS = {"boa --help": 10.0, "boa ps": 10.0, "boa submit": 10.0, "boa plan": 20.0}
"""At most so many times as long."""
LISTED = 3
"""Jobs that `boa ps` shows."""
CONFIG = {
    "budget_per_hour": 4.0,
    "gpu_types": {"T4": {"price": 1.0, "gpus_per_node": 1, "max_nodes": 1}},
}
JOB = ("--class", "bench", "--", "sleep", "3600")
"""The first holds the only GPU, the others wait: nothing else is to run on this machine."""


def main() -> None:
    options = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 150)
    table = Measured(
        f"a command's answer, in multiples of {NOTHING}",
        note=f"best of {options.best_of} in each of {options.rounds} rounds; medians over the "
        f"rounds. boa plan: {EXAMPLE.name}; boa ps: {LISTED} jobs",
    )
    with _service() as environment:
        found = measured(options, environment)
    for what, times in found.items():
        ratios = [mine / none for mine, none in zip(times, found[NOTHING], strict=True)]
        ratio, target = statistics.median(ratios), TARGETS.get(what)
        table.add(
            what=what,
            median_ms=1e3 * statistics.median(times),
            least_ms=1e3 * min(times),
            times_nothing=ratio,
            target=target,
            met="" if target is None else "yes" if ratio <= target else "no",
        )
    show(table, console)
    write(options.json, [table])
    console.print(f"written to {options.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--best-of", type=int, default=3)
    installed = Path(sys.executable).with_name("boa")
    parser.add_argument("--boa", default=str(installed), help="another boa, such as an older one")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "shell.json")
    return parser.parse_args()


@contextmanager
def _service() -> Iterator[Mapping[str, str]]:
    """A service with a few jobs, and the environment in which commands find it."""
    with tempfile.TemporaryDirectory(prefix="boa-shell-") as scratch:
        folder = Path(scratch)
        environment = {name: value for name, value in os.environ.items() if name not in WITHOUT}
        environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        with OwnService(folder / "service", CONFIG) as service:
            environment["BOA_SERVER"] = service.url
            yield environment
            with service.client() as client:
                for job in client.jobs():
                    client.stop(job["id"])
                for job in client.jobs():
                    client.wait(job["id"])


WITHOUT = ("PYTHONDONTWRITEBYTECODE", "BOA_TOKEN")


def measured(options: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, list[float]]:
    """Seconds of every command, the best of each round."""
    boa = shlex.split(options.boa)
    commands = {
        NOTHING: [sys.executable, "-c", "pass"],
        "boa --help": [*boa, "--help"],
        "boa ps": [*boa, "ps"],
        "boa submit": [*boa, "submit", *JOB],
        "boa plan": [*boa, "plan", str(EXAMPLE), "--budget", BUDGET],
    }
    for _ in range(LISTED):
        _seconds(commands["boa submit"], environment)
    for command in commands.values():  # bytecode and disk
        _stop(boa, _seconds(command, environment)[1], environment, command)
    found: dict[str, list[float]] = {what: [] for what in commands}
    for _ in range(options.rounds):
        best = dict.fromkeys(commands, float("inf"))
        for _ in range(options.best_of):
            for what, command in commands.items():
                seconds, said = _seconds(command, environment)
                best[what] = min(best[what], seconds)
                _stop(boa, said, environment, command)
        for what, seconds in best.items():
            found[what].append(seconds)
    return found


def _seconds(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}: {done.stderr.strip()}")
    return seconds, done.stdout


def _stop(
    boa: Sequence[str], said: str, environment: Mapping[str, str], command: Sequence[str]
) -> None:
    """Of a job that was submitted: the next list is to be as long as the last."""
    if "submit" in command:
        _seconds([*boa, "stop", said.strip()], environment)


if __name__ == "__main__":
    main()
