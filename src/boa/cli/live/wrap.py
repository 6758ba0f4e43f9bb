"""`boa wrap`: run a training script that knows nothing of BOA as an elastic job."""

import os
import re
import shlex
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from boa.cli import options, parsers, shell
from boa.cli.console import console, emit_json
from boa.cli.markup import escape
from boa.cli.options import Json
from boa.cli.tables import Table
from boa.errors import InputError, UsageError
from boa.train.wrap import checking, fitting, placeholders, reading, running, watching

SIGNALS = ("USR1", "USR2", "INT", "HUP", "TERM")
CHECK_S = 60.0
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
        list[str],
        shell.Argument(metavar="-- COMMAND...", help="The command that starts the training."),
    ],
    *,
    pattern: Annotated[
        list[re.Pattern[str]] | None,
        shell.Option(
            "--pattern",
            metavar="REGEX",
            parser=_pattern,
            help="Read progress by this regular expression: groups named step, epoch or progress; "
            "total and total_epochs; loss and other names are metrics. May be repeated. Default: "
            "the usual logs, such as 'step 120/900' and tqdm's bars.",
        ),
    ] = None,
    checkpoints: Annotated[
        list[str] | None,
        shell.Option(
            "--checkpoints",
            metavar="GLOB",
            parser=_glob,
            help="Take these files or folders for the script's checkpoints. May be repeated. "
            "Default: checkpoint*, *.ckpt, *.pt, *.pth, here and two folders deep.",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        shell.Option(
            "--resume",
            metavar="ARGS",
            help="Add these arguments if there is a checkpoint: '--resume {checkpoint}'. Scripts "
            "that find their newest checkpoint need none.",
        ),
    ] = None,
    ask: Annotated[
        str | None,
        shell.Option(
            "--signal",
            metavar="|".join(SIGNALS),
            parser=parsers.one_of("--signal", SIGNALS),
            help="Send this signal at a stop, if it makes the script save a checkpoint.",
        ),
    ] = None,
    settle_s: Annotated[
        float,
        shell.Option(
            "--settle-s",
            metavar="S",
            parser=parsers.number("--settle-s", "seconds >= 0, such as 1", zero=True),
            help="Take a checkpoint for complete when it has not changed for this many seconds.",
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
    check: Annotated[
        bool,
        shell.Option(
            "--check",
            help="Run the command briefly, stop it at a checkpoint and start it again. Print what "
            "was found of progress, total, loss, checkpoints and resuming. Needs no service.",
        ),
    ] = False,
    check_s: Annotated[
        float,
        shell.Option(
            "--check-s",
            metavar="S",
            parser=parsers.number("--check-s", "seconds > 0, such as 60"),
            help="With --check: seconds that each of the two runs may take.",
        ),
    ] = CHECK_S,
    width: Annotated[
        int | None,
        options.count(
            "--width", "K", 1, "With --check: GPUs to run on. Default: $BOA_WIDTH, or 1."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run an unchanged training script as an elastic job.

    BOA starts the command with the job's GPUs: torchrun, accelerate launch and
    deepspeed get their number of processes. Progress is read from the output.
    When the job is stopped or resized, BOA waits for the script's next
    checkpoint (at most the job's grace_s), ends the script and starts it again.
    The script must resume from its checkpoints, by itself or by --resume.
    A script that has finished is not started again.

    Placeholders: {width} is the number of GPUs, {256/width} and {16*width} are
    arithmetic with it (+ - * / // and parentheses; the result must be whole).

    Submit it with launcher: single. Try it first with --check.

    [bold]Examples[/bold]
    [dim]$[/dim] boa wrap --check -- torchrun train.py
    [dim]$[/dim] boa submit --class gpt --grace-s 600 -- boa wrap -- torchrun train.py
    [dim]$[/dim] boa wrap -- torchrun train.py --batch-size {256/width}
    [dim]$[/dim] boa wrap --samples-per-step '16*{width}' -- torchrun train.py --batch-size 16
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
    # what the command prints is no part of a JSON document or a table
    out = (sys.stderr if json or check else sys.stdout).buffer
    try:
        if check:
            raise shell.Exit(_checked(checking.check(wrapped, width, check_s, out), json))
        done = running.run(wrapped, out=lambda: out)
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


def _checked(report: checking.Report, json: bool) -> int:
    """Print the results of a check; return the exit code."""
    if json:
        findings = [asdict(finding) for finding in report.findings]
        emit_json({"ready": report.ready, "width": report.width, "findings": findings})
        return 0 if report.ready else 1
    rows = Table()
    for name in ("check", "", "found"):
        rows.add_column(name)
    for finding in report.findings:
        mark = {True: "ok", False: "missing", None: "–"}[finding.ok]
        to_do = f"\nto do: {finding.to_do}" if finding.to_do else ""
        rows.add_row(finding.check, mark, escape(finding.seen + to_do))
    gpus = "1 GPU" if report.width == 1 else f"{report.width} GPUs"
    verdict = "is elastic" if report.ready else "is not elastic yet"
    if report.ready and not report.uses_width:
        verdict = "stops and resumes, but nothing in it goes by the number of GPUs"
    console().print(rows, f"At {gpus} this command {verdict}.")
    return 0 if report.ready else 1
