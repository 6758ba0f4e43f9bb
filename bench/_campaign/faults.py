"""Faults of a machine and of its processes. Each strikes a world, and is over when it returns or
when the world is healed; it says False where there was nothing to strike."""

import errno
import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from _campaign.disks import LoopDisk
from _campaign.processes import NeverCame, send, until
from _campaign.world import World

Need: TypeAlias = Literal["nothing", "loop", "shim"]
Strike: TypeAlias = Callable[[World, random.Random], bool]
T = TypeVar("T")
LOCAL, ALL = ("local", "postgresql"), ("local", "postgresql", "ray", "aws")
JUMPS_S = (-86_400, -3600, -5, 5, 3600, 86_400)


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    strike: Strike
    worlds: tuple[str, ...]
    need: Need
    weight: int


FAULTS: dict[str, Fault] = {}


def fault(
    name: str, worlds: tuple[str, ...] = LOCAL, need: Need = "nothing", weight: int = 3
) -> Callable[[Strike], Strike]:
    def keep(strike: Strike) -> Strike:
        FAULTS[name] = Fault(name, strike, worlds, need, weight)
        return strike

    return keep


# Processes


def one_of(world: World, luck: random.Random, who: Callable[[], list[T]]) -> T | None:
    """Somebody of these, once there is anybody."""
    world.be_busy()

    def there() -> bool:
        world.tick()
        return bool(who())

    with suppress(NeverCame):
        until(there, "", world.target_s)
    found = who()
    return luck.choice(found) if found else None


def _struck(who: Callable[[World], list[int]], number: int) -> Strike:
    def strike(world: World, luck: random.Random) -> bool:
        pid = one_of(world, luck, lambda: who(world))
        if pid is None or not send(pid, number):
            return False
        if number == signal.SIGSTOP:
            world.stopped.add(pid)
            if luck.random() < 0.5:  # else until the faults are over
                world.advance()
                world.go_on()
        return True

    return strike


for _kind, _who, _weight in (
    ("supervisor", World.supervisors, 3),
    ("worker", World.workers, 3),
    ("child", World.children, 3),
    ("parent", World.parents, 2),
    ("simulation", World.simulations, 1),
):
    _where = ALL if _kind in ("worker", "child") else LOCAL
    fault(f"kill-{_kind}", _where, weight=_weight)(_struck(_who, signal.SIGKILL))
    fault(f"stop-{_kind}", _where, weight=2)(_struck(_who, signal.SIGSTOP))


@fault("kill-service", ALL, weight=4)
def kill_service(world: World, luck: random.Random) -> bool:
    world.service.kill()
    if luck.random() < 0.5:
        world.advance()
    world.up()
    return True


@fault("end-service", ALL, weight=1)
def end_service(world: World, luck: random.Random) -> bool:
    if not world.service.pid:
        return False
    if (code := world.service.ask_to_end()) != 0:
        world.violated(f"asked to end, the service ended with {code}")
    world.advance()
    world.up()
    return True


@fault("stop-service", ALL, weight=2)
def stop_service(world: World, luck: random.Random) -> bool:
    if not send(world.service.pid, signal.SIGSTOP):
        return False
    world.advance()
    if luck.random() < 0.5:
        world.service.kill()
    else:
        send(world.service.pid, signal.SIGCONT)
    world.up()
    return True


@fault("stop-supervisor-for-good", LOCAL, weight=1)
def stop_supervisor_for_good(world: World, luck: random.Random) -> bool:
    """A job whose supervisor does nothing any more ends all the same when it is told to."""
    names = sorted(world.said.jobs.keys() - world.said.stops)
    runs, supervisors = world.data / "runs", world.supervisors()
    for name in names:
        job = world.said.jobs[name]
        with suppress(OSError):
            for path in (runs / job).glob("*/up.*"):
                pid = int(path.name.split(".")[1])
                if pid in supervisors and send(pid, signal.SIGSTOP):
                    world.user.stop(name)
                    if name not in world.said.stops:
                        world.stopped.add(pid)
                    return True
    return False


@fault("kill-everybody", LOCAL, weight=2)
def kill_everybody(world: World, luck: random.Random) -> bool:
    """As when a container is ended: nothing is lost on the disk."""
    world.switch_off()
    world.up()
    return True


# Disks


def _power_cycle(world: World) -> None:
    world.switch_off()
    assert isinstance(world.disk, LoopDisk)
    world.disk.again()
    world.up()


@fault("power-cut", need="loop", weight=6)
def power_cut(world: World, luck: random.Random) -> bool:
    assert isinstance(world.disk, LoopDisk)
    world.disk.cut()
    _power_cycle(world)
    return True


@fault("disk-gone", need="loop", weight=2)
def disk_gone(world: World, luck: random.Random) -> bool:
    """Every call fails for a while, and then the power goes."""
    assert isinstance(world.disk, LoopDisk)
    world.disk.cut()
    world.use()
    world.advance()
    if luck.random() < 0.3:
        world.service.kill()
        world.up(may_refuse=True)
    _power_cycle(world)
    return True


@fault("disk-read-only", need="loop", weight=3)
def disk_read_only(world: World, luck: random.Random) -> bool:
    assert isinstance(world.disk, LoopDisk)
    world.disk.make_read_only()
    world.use()
    world.advance()
    if luck.random() < 0.3:
        world.service.kill()
        world.up(may_refuse=True)
    _power_cycle(world)
    return True


@fault("disk-full", need="loop", weight=4)
def disk_full(world: World, luck: random.Random) -> bool:
    assert isinstance(world.disk, LoopDisk)
    world.disk.fill()
    for _ in range(luck.randint(1, 3)):
        world.use()
    world.advance()
    if luck.random() < 0.4:
        world.service.kill()
        world.up(may_refuse=True)
        world.advance()
    world.disk.empty()
    world.up()
    return True


def _failing(error: int) -> Strike:
    def strike(world: World, luck: random.Random) -> bool:
        assert world.shim is not None
        world.shim.fail(error, luck.choice((1, 2, 7)))
        try:
            for _ in range(luck.randint(1, 2)):
                world.use()
            world.advance()
            if luck.random() < 0.3:
                world.service.kill()
                world.up(may_refuse=True)
        finally:
            world.shim.fail(0, 1)
        world.up(may_refuse=True)
        world.up()
        return True

    return strike


fault("calls-eio", need="shim")(_failing(errno.EIO))
fault("calls-enospc", need="shim", weight=2)(_failing(errno.ENOSPC))


@fault("clock-jump", ALL, need="shim")
def clock_jump(world: World, luck: random.Random) -> bool:
    assert world.shim is not None
    world.shim.jump(luck.choice(JUMPS_S))
    if luck.random() < 0.6:
        world.service.kill()
        if luck.random() < 0.5:
            world.shim.jump(luck.choice(JUMPS_S))
        world.up()
    return True


# Files of runs

DAMAGE = (b"", b"\0" * 64, b"\xff\xfe" * 40, b"1", b"{" * 500, b"-9\n0\n" + b"x" * 5000)


def _damaged(path: Path, luck: random.Random) -> bool:
    """Something else in its place."""
    how = luck.randrange(len(DAMAGE) + 3)
    try:
        if how < len(DAMAGE):
            if path.is_fifo():  # of a fault before: to open it would be to wait for ever
                path.unlink()
            path.write_bytes(DAMAGE[how])
            return True
        path.unlink(missing_ok=True)
        if how == len(DAMAGE):
            os.mkfifo(path)
        elif how == len(DAMAGE) + 1:
            path.mkdir()
        else:
            path.symlink_to("/nowhere/at/all")
    except OSError:
        return False
    return True


def _files(world: World, luck: random.Random, pattern: str) -> list[Path]:
    with suppress(OSError):
        found = sorted(path for path in (world.data / "runs").glob(pattern))
        luck.shuffle(found)
        return found
    return []


def _damages(pattern: str, restart: float) -> Strike:
    def strike(world: World, luck: random.Random) -> bool:
        with suppress(NeverCame):
            until(lambda: bool(_files(world, luck, pattern)), "", world.target_s)
        struck = any(_damaged(path, luck) for path in _files(world, luck, pattern)[:1])
        if struck and luck.random() < restart:
            world.service.kill()
            world.up()
        return struck

    return strike


fault("damage-launch", weight=2)(_damages("*/*/[lcu][alp]*", 0.3))
fault("damage-log", weight=2)(_damages("*/*/*.log", 0.2))
fault("damage-lock", weight=1)(_damages("*/*/lock", 0.3))
fault("damage-marker", weight=1)(_damages(".runs/*", 0.4))


@fault("damage-outcome", weight=2)
def damage_outcome(world: World, luck: random.Random) -> bool:
    """Before the service has read it: that is looking away meanwhile."""
    at_work = one_of(world, luck, world.workers) is not None
    if not at_work or not send(world.service.pid, signal.SIGSTOP):
        return False
    struck = _damages("*/*/outcome", 0.0)(world, luck)
    if luck.random() < 0.4:
        world.service.kill()
    else:
        send(world.service.pid, signal.SIGCONT)
    world.up()
    return struck


@fault("damage-owner", weight=1)
def damage_owner(world: World, luck: random.Random) -> bool:
    """The service may refuse a folder that names another owner; what is no name is no owner."""
    path = world.data / "owner"
    try:
        kept = path.read_bytes()
    except OSError:
        return False
    struck = _damaged(path, luck)
    world.service.kill()
    if not world.up(may_refuse=True):
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
        path.write_bytes(kept)
        world.up()
    return struck


STRAYS = (
    *("lost+found", ".runs/garbage", ".runs/9999.1", ".runs/-1.x", "9999/1/outcome", "é/ü"),
    *("1/999/launch", "1/work.bak", ".new/left", "1/1/99.log", "core"),
)


@fault("stray-names", weight=2)
def stray_names(world: World, luck: random.Random) -> bool:
    runs = world.data / "runs"
    for name in luck.sample(STRAYS, 4):
        with suppress(OSError):
            (runs / name).parent.mkdir(parents=True, exist_ok=True)
            (runs / name).write_bytes(luck.choice(DAMAGE))
    if luck.random() < 0.4:
        world.service.kill()
        world.up()
    return True


# Others


@fault("second-on-folder", ALL, weight=1)
def second_on_folder(world: World, luck: random.Random) -> bool:
    if not world.up():
        return False
    ended = world.service.second()
    if ended is None:
        world.violated("two services on one folder at once")
    elif ended.code != 2 or "Traceback" in ended.words:
        world.violated(f"a second service on the folder ended with {ended.code}: {ended.words}")
    return True


@fault("second-on-database", LOCAL, weight=1)
def second_on_database(world: World, luck: random.Random) -> bool:
    if not world.up():
        return False
    ended = world.service.second(**world.second_settings())
    if ended is None:
        world.violated("two services on one database at once")
    elif ended.code not in (1, 2) or "Traceback" in ended.words:
        world.violated(f"a second service on the database ended with {ended.code}: {ended.words}")
    return True


def heal(world: World) -> None:
    """The faults are over."""
    world.go_on()
    if world.shim is not None:
        world.shim.fail(0, 1)
    world.recover()
    world.up(may_refuse=True)
    world.up()
