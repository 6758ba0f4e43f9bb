"""Commands that start as many processes as there are GPUs, made to fit a width."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boa.train.wrap.placeholders import filled, has_arithmetic, has_placeholder

CHECKPOINT = "{checkpoint}"
"""Stands for the path of the newest checkpoint in a command."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """Options of a program that starts processes, without their dashes and with `-` for `_`."""

    processes: str
    """The option for how many it starts on a machine."""
    port: str = ""
    """The option for the port at which they meet; empty: it finds one."""
    meets: frozenset[str] = frozenset()
    """Options that say otherwise where they meet."""


TORCHRUN = Launcher(
    "nproc-per-node",
    "master-port",
    frozenset({"standalone", "rdzv-endpoint", "rdzv-backend", "master-port"}),
)
ACCELERATE = Launcher("num-processes", "main-process-port", frozenset({"main-process-port"}))
DEEPSPEED = Launcher("num-gpus", "master-port", frozenset({"master-port"}))
MODULES = {"torch.distributed.run": TORCHRUN, "torch.distributed.launch": TORCHRUN}


def width_of(environment: Mapping[str, str]) -> int:
    """Return the job's GPUs; 1 outside of a job."""
    text = environment.get("BOA_WIDTH", "")
    return int(text) if text.isdigit() and int(text) else 1


def fitted(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command with its placeholders filled in and, in a job, with a launcher's options
    for `BOA_WIDTH` processes that meet at `MASTER_PORT`."""
    width = width_of(environment)
    words = [filled(word, width) for word in command]
    launcher, begins = launcher_of(words)
    if launcher is None or not environment.get("BOA_WIDTH"):
        return words
    own, rest = words[:begins], words[begins:]
    if not _is_filled(command[begins:], launcher.processes):
        rest = _without(rest, launcher.processes)
        own.append(_option(launcher, launcher.processes, str(width)))
    port = environment.get("MASTER_PORT")
    if launcher.port and port and not any(_name(word) in launcher.meets for word in rest):
        own.append(_option(launcher, launcher.port, port))
    return own + rest


def resumed(
    command: Sequence[str], arguments: Sequence[str], checkpoint: str, width: int = 1
) -> list[str]:
    """Return the command with the arguments that name its checkpoint."""
    more = [filled(word, width).replace(CHECKPOINT, checkpoint) for word in arguments]
    return [*command, *more]


def is_fixed(command: Sequence[str]) -> bool:
    """Return whether the command looks as if every GPU gets a fixed batch: nothing in it is
    calculated from the width."""
    return not any(has_arithmetic(word) for word in command)


def uses_width(command: Sequence[str]) -> bool:
    """Return whether the command is seen to get the job's width: by a launcher, a placeholder or
    the variable."""
    is_launched = launcher_of(command)[0] is not None
    return is_launched or any(has_placeholder(each) or "BOA_WIDTH" in each for each in command)


def launcher_of(words: Sequence[str]) -> tuple[Launcher | None, int]:
    """Which it is, and where its own options begin."""
    program = os.path.basename(words[0])
    if program == "torchrun":
        return TORCHRUN, 1
    if program == "deepspeed":
        return DEEPSPEED, 1
    if program == "accelerate" and list(words[1:2]) == ["launch"]:
        return ACCELERATE, 2
    if program.startswith("python") and "-m" in words[1:3]:
        at = list(words).index("-m") + 1
        return MODULES.get(words[at] if at < len(words) else ""), at + 1
    return None, 0


def _is_filled(words: Sequence[str], option: str) -> bool:
    """Return whether the value of an option is a placeholder."""
    for at, word in enumerate(words):
        if _name(word) == option:
            return has_placeholder(word if "=" in word else "".join(words[at + 1 : at + 2]))
    return False


def _without(words: Sequence[str], option: str) -> list[str]:
    """Without the first of that name, and its value."""
    for at, word in enumerate(words):
        if _name(word) == option:
            return [*words[:at], *words[at + (1 if "=" in word else 2) :]]
    return list(words)


def _name(word: str) -> str:
    return word.partition("=")[0].lstrip("-").replace("_", "-") if word.startswith("-") else ""


def _option(launcher: Launcher, name: str, value: str) -> str:
    # torchrun takes either sign between words; the two others the older one alone
    return f"--{name if launcher is TORCHRUN else name.replace('-', '_')}={value}"
