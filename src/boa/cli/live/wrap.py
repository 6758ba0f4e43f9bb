"""`boa wrap`: run a training script that knows nothing of BOA as an elastic job."""

import os
import re
import shlex
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from boa.cli import parsers, shell
from boa.cli.console import emit_json
from boa.cli.options import Json
from boa.errors import InputError, UsageError
from boa.train.wrap import fitting, placeholders, reading, running, watching

SIGNALS = ("USR1", "USR2", "INT", "HUP", "TERM")
_GROUPS = ", ".join(f"(?P<{name}>…)" for name in reading.COUNTED)


def _pattern(text: Any) -> re.Pattern[str]:
    expected = f"a regular expression with {_GROUPS} in it, such as 'step (?P<step>\\d+)'"
    try:
        found = re.compile(str(text))
    except (re.error, OverflowError, RecursionError) as problem:
        raise InputError("--pattern", text, expected, f"got {text!r} ({problem})") from None
    if not found.groupindex:
        raise InputError("--pattern", text, expected)
    return found


def _glob(text: Any) -> str:
    if not str(text).strip() or "\0" in str(text):
        raise InputError("--checkpoints", text, "names of checkpoints, such as 'out/checkpoint-*'")
    return str(text)


def _arguments(text: str) -> list[str]:
    expected = "arguments with {checkpoint} among them, such as '--resume {checkpoint}'"
    try:
        found = shlex.split(text)
    except ValueError as problem:
        raise InputError("--resume", text, expected, f"got {text!r} ({problem})") from None
    if not any(fitting.CHECKPOINT in word for word in found):
        raise InputError("--resume", text, expected)
    return found


def _expression(text: Any) -> str:
    try:
        placeholders.samples_per_step(str(text), 1)
    except placeholders.Unfit as problem:
        raise _refused("--samples-per-step", problem) from None
    return str(text)


def _refused(option: str, problem: placeholders.Unfit) -> InputError:
    text = f"got {problem.text!r}, which {problem.problem}"
    return InputError(option, problem.text, problem.expected, text)


def wrap(
    words: Annotated[
        list[str], shell.Argument(metavar="-- COMMAND...", help="As one starts it by hand.")
    ],
    *,
    pattern: Annotated[
        list[re.Pattern[str]] | None,
        shell.Option(
            "--pattern",
            metavar="REGEX",
            parser=_pattern,
            help="Where its log says how far it is: groups named step, epoch or progress; loss and "
            "others are metrics. May be repeated. Default: what most logs look like.",
        ),
    ] = None,
    checkpoints: Annotated[
        list[str] | None,
        shell.Option(
            "--checkpoints",
            metavar="GLOB",
            parser=_glob,
            help="Its checkpoints, files or folders. May be repeated. Default: checkpoint*, "
            "*.ckpt, *.pt, *.pth, here and two folders deep.",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        shell.Option(
            "--resume",
            metavar="ARGS",
            help="Arguments to add where there is a checkpoint: '--resume {checkpoint}'. Not for "
            "scripts that look for it themselves.",
        ),
    ] = None,
    ask: Annotated[
        str | None,
        shell.Option(
            "--signal",
            metavar="|".join(SIGNALS),
            parser=parsers.one_of("--signal", SIGNALS),
            help="A signal that makes it save: sent when it is to stop, instead of waiting.",
        ),
    ] = None,
    settle_s: Annotated[
        float,
        shell.Option(
            "--settle-s",
            metavar="S",
            parser=parsers.number("--settle-s", "seconds >= 0, such as 1", zero=True),
            help="How long a checkpoint must rest to be whole (1).",
        ),
    ] = watching.SETTLE_S,
    samples_per_step: Annotated[
        str | None,
        shell.Option(
            "--samples-per-step",
            metavar="EXPR",
            parser=_expression,
            help="Count progress in samples: the samples of one step over all GPUs, such as "
            "'16*{width}' where every GPU has a batch of 16. Default: count steps.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a training script that knows nothing of BOA as an elastic job.

    The command is started with the job's width: torchrun, accelerate launch and
    deepspeed get their number of processes, and {width} in any command stands
    for it. Progress is read from what it prints. When the job is to stop or to
    change its width, its next checkpoint is waited for (as long as the job's
    grace_s), and it is started again: it has to go on from its checkpoints, by
    itself or by --resume.

    It is one process that starts the others: submit it with launcher: single.

    [bold]Examples[/bold]
    [dim]$[/dim] boa wrap -- torchrun train.py
    [dim]$[/dim] boa submit --class gpt --grace-s 600 -- boa wrap -- torchrun train.py
    [dim]$[/dim] boa wrap --checkpoints 'out/step-*' --resume '--resume {checkpoint}' \\
        --pattern 'it (?P<step>\\d+) loss (?P<loss>\\S+)' -- torchrun train.py --save 500
    """
    patterns = reading.USUAL if pattern is None else tuple(pattern)
    if not any(name in each.groupindex for each in patterns for name in reading.COUNTED):
        given = " ".join(each.pattern for each in patterns)
        raise InputError("--pattern", given, f"one with {_GROUPS} in it")
    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        raise UsageError(
            "boa wrap starts the processes itself, and is started once for each GPU here; expected "
            "`launcher: single` in the job's file (boa submit --launcher single)."
        )
    wrapped = running.Wrapped(
        command=words,
        patterns=patterns,
        checkpoints=watching.USUAL if checkpoints is None else tuple(checkpoints),
        resume=() if resume is None else tuple(_arguments(resume)),
        ask=None if ask is None else signal.Signals[f"SIG{ask}"],
        settle_s=settle_s,
        samples_per_step=samples_per_step or "",
    )
    try:
        # what it prints is no part of a JSON document
        done = running.run(wrapped, out=lambda: (sys.stderr if json else sys.stdout).buffer)
    except running.NotStarted as problem:
        expected = "a program that can be run here, by its path or on the PATH"
        text = f"got {words[0]!r} ({problem})"
        raise InputError("COMMAND", words[0], expected, text) from None
    except placeholders.Unfit as problem:
        raise _refused("COMMAND", problem) from None
    except KeyboardInterrupt:
        raise shell.Exit(running.INTERRUPTED) from None
    if json:
        emit_json({**asdict(done), "command": [Path(words[0]).name, *words[1:]]})
    raise shell.Exit(done.exit_code)
