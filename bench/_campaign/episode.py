"""An episode: a world, a few jobs, a few faults; then all must be well again."""

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from _campaign import faults, invariants
from _campaign.faults import FAULTS, Fault
from _campaign.processes import NeverCame
from _campaign.world import Means, World
from boa.errors import BoaError

MOST = 7
SHARES = {"local": 60, "postgresql": 20, "ray": 8, "aws": 12}


@dataclass(frozen=True)
class Episode:
    """What is to happen; the same for the same seed and number."""

    seed: int
    number: int
    world: str
    faults: tuple[str, ...]
    options: str = ""
    """Those that it was planned with."""

    @property
    def again(self) -> str:
        """The command that does the same once more."""
        return f"bench/campaign.py {self.seed} --episode {self.number}{self.options}"


@dataclass
class Outcome:
    episode: Episode
    struck: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    """Faults for which nobody was there to be struck."""
    violations: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    """Of a world in which something was violated: its log, events, runs and processes."""
    took_s: float = 0.0


Maker = Callable[[Means, random.Random], World]


def possible(means: Means, worlds: Collection[str], only: Collection[str]) -> list[Fault]:
    have = {"nothing", *(["loop"] if means.loop else []), *(["shim"] if means.preload else [])}
    return [
        one
        for one in FAULTS.values()
        if one.need in have and set(one.worlds) & set(worlds) and (not only or one.name in only)
    ]


def planned(
    seed: int,
    number: int,
    worlds: Collection[str],
    known: Sequence[Fault],
    most: int = MOST,
    options: str = "",
) -> Episode:
    """Worlds by their shares, faults by their weights; at most so many of them."""
    luck = random.Random(f"{seed}/{number}")
    able = [name for name in SHARES if name in worlds and any(name in f.worlds for f in known)]
    world = luck.choices(able, [SHARES[name] for name in able])[0]
    here = [one for one in known if world in one.worlds]
    struck = luck.choices(here, [one.weight for one in here], k=luck.randint(most // 2, most))
    return Episode(seed, number, world, tuple(one.name for one in struck), options)


def run(episode: Episode, means: Means, make: Maker) -> Outcome:
    luck = random.Random(f"{episode.seed}/{episode.number}/{episode.world}")
    outcome, began = Outcome(episode), time.monotonic()
    world = make(means, luck)
    try:
        _play(episode, world, luck, outcome)
    except NeverCame as trouble:
        world.violated(str(trouble))
    finally:
        outcome.violations, outcome.told = world.violations, world.told
        if outcome.violations:
            outcome.evidence = _evidence(world)
        world.close()
        outcome.took_s = time.monotonic() - began
    return outcome


def _play(episode: Episode, world: World, luck: random.Random, outcome: Outcome) -> None:
    world.up()
    for _ in range(luck.randint(2, 4)):
        world.submit()
    for name in episode.faults:
        world.advance()
        for _ in range(luck.randint(0, 2)):
            world.use()
        began = time.monotonic()
        struck = FAULTS[name].strike(world, luck)
        (outcome.struck if struck else outcome.missed)[name] += 1
        took_s = time.monotonic() - began
        world.tell(f"{name} {took_s:.1f} s" if struck else f"({name}: nobody there)")
    began = time.monotonic()
    faults.heal(world)
    invariants.settle(world, world.settled_s)
    world.tell(f"all over {time.monotonic() - began:.1f} s")
    invariants.check(world)
    if world.service.pid and world.service.ask_to_end() != 0:
        world.violated("the service did not end well when it was asked to")
    if not world.violations:
        with suppress(OSError):
            invariants.check_store(world)


def _evidence(world: World) -> list[str]:
    found = [world.service.log.read_text("utf-8", "replace")[-6000:]]
    with suppress(BoaError), world.service.client() as client:
        found += [f"{event['at']:.3f} {event['text']}" for event in client.history()[-60:]]
    with suppress(OSError):
        found += sorted(str(path) for path in (world.data / "runs").rglob("*"))
    for pid in world.everybody():
        with suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            found.append(f"process {pid}: {command[:300]}")
    found += [str(line) for line in world.journal.lines() if line.what != "unit"]
    return found
