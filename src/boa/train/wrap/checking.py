"""A dry check of a wrapped command: progress, total, loss, checkpoints, and whether it resumes."""

import contextlib
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO

from boa.train import session
from boa.train.wrap import reading, running
from boa.train.wrap.account import Account, Mark
from boa.train.wrap.fitting import is_fixed, uses_width, width_of

LONGEST_EXAMPLE = 80
"""Characters of a line that is shown."""
NOT_FOR_A_CHECK = ("BOA_REPORT_URL", "BOA_REPORT_TOKEN", "BOA_REPORT_CA", "BOA_DONE")
"""Variables of a job that a check must not act for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked."""

    check: str
    ok: bool | None
    """None: missing, but not needed."""
    seen: str
    to_do: str = ""


class Trial(running.Run):
    """A run that asks itself to stop, once it has seen enough or its time is over."""

    look_s = running.LOOK_SOON_S

    def __init__(
        self,
        wrapped: running.Wrapped,
        environment: Mapping[str, str],
        out: IO[bytes],
        enough: Callable[["Trial"], bool],
        limit_s: float,
    ) -> None:
        self._enough, self._until = enough, time.monotonic() + limit_s
        self._asked_at: float | None = None
        self.lines: list[str] = []
        """Lines that told progress, each with other numbers than the one before."""
        self.found: dict[str, float] = {}
        """The newest numbers by their names."""
        self.checkpoints: list[tuple[str, Mark, float]] = []
        """Checkpoints that became whole: path, position, and when it was written."""
        super().__init__(wrapped, environment, out)

    def stop_requested(self) -> bool:
        if self._asked_at is None and (self._enough(self) or time.monotonic() >= self._until):
            self._asked_at = time.monotonic()
        return self._asked_at is not None

    def asked_s_ago(self) -> float:
        return 0.0 if self._asked_at is None else time.monotonic() - self._asked_at

    def saw(self, path: str, mark: Mark, when: float) -> None:
        self.checkpoints.append((path, mark, when))

    def _hear(self, line: bytes) -> None:
        before = self.account.now
        super()._hear(line)
        text = line.decode("utf-8", "replace").strip()
        self.found |= reading.find(text, self._wrapped.patterns)
        if self.account.now != before or (self.account.first and not self.lines):
            self.lines = [*self.lines[-9:], text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Results of a check."""

    width: int
    findings: tuple[Finding, ...]
    uses_width: bool = True
    """The command contains the number of GPUs."""

    @property
    def ready(self) -> bool:
        return all(finding.ok is not False for finding in self.findings)


def check(wrapped: running.Wrapped, width: int | None, limit_s: float, out: IO[bytes]) -> Report:
    """Run the command until it has saved a checkpoint, stop it, and start it again."""
    with _as_job(width) as environment:
        gpus = width_of(environment)
        first = Trial(wrapped, environment, out, _has_shown_all, limit_s)
        ended = first.follow()
        findings = [_progress(first), _total(first), _loss(first), _checkpoints(first)]
        if ended.exit_code != 0:
            code = ended.exit_code
            findings.insert(
                0,
                Finding(
                    check="command",
                    ok=False,
                    seen=f"exit code {code}",
                    to_do="see its output above",
                ),
            )
            return Report(width=gpus, findings=tuple(findings))
        findings.append(_resumed(first, wrapped, environment, limit_s, out))
        findings += _gpus(wrapped)
        return Report(width=gpus, findings=tuple(findings), uses_width=uses_width(wrapped.command))


@contextlib.contextmanager
def _as_job(width: int | None) -> Iterator[dict[str, str]]:
    """Stand in for a job's environment, with an empty checkpoint folder of its own."""
    before = dict(os.environ)
    try:
        with tempfile.TemporaryDirectory(prefix="boa-check-") as folder:
            for name in NOT_FOR_A_CHECK:
                os.environ.pop(name, None)
            os.environ["BOA_CHECKPOINT_DIR"] = folder
            os.environ["BOA_WIDTH"] = str(width or width_of(before))
            session.session.cache_clear()
            yield dict(os.environ)
    finally:
        os.environ.clear()
        os.environ.update(before)
        session.session.cache_clear()


def _has_shown_all(trial: Trial) -> bool:
    """Return whether there was progress, and after it a checkpoint: a stop waits for the next."""
    first = trial.account.first
    later = [mark for _, mark, _ in trial.checkpoints if first and _place(mark) > _place(first)]
    return len(trial.lines) > 1 and bool(later)


def _place(mark: Mark) -> tuple[int, float]:
    return mark.turn, mark.count


def _progress(trial: Trial) -> Finding:
    if len(trial.lines) < 2:
        seen = f"one line: {_shown(trial.lines[0])}" if trial.lines else "no line tells progress"
        return Finding(
            check="progress",
            ok=False,
            seen=seen,
            to_do="print the step now and then, such as 'step 120/900', or name its pattern with "
            "--pattern 'it=(?P<step>\\d+)'; for slow scripts give --check-s more time",
        )
    unit, each = _unit(trial.account), trial.account.per_step
    if _is_in_samples(trial.account):
        unit = f"samples, {each:g} per step"
    return Finding(check="progress", ok=True, seen=f"{unit}, from {_shown(trial.lines[-1])}")


def _unit(account: Account) -> str:
    """Return the unit that the log counts in."""
    return "steps" if account.unit == "steps" else "epochs"


def _is_in_samples(account: Account) -> bool:
    return account.unit == "steps" and account.per_step != 1


def _total(trial: Trial) -> Finding:
    total = trial.account.total
    if total is None:
        to_do = "print it ('step 120/900', 'epoch 3/10'), or give --max-steps N in the command"
        return Finding(check="total", ok=None, seen="unknown", to_do=to_do)
    seen = f"{total:,.6g} {_unit(trial.account)}"
    if _is_in_samples(trial.account):
        seen = f"{total:,.6g} samples ({total / trial.account.per_step:,.6g} steps)"
    return Finding(check="total", ok=True, seen=seen)


def _loss(trial: Trial) -> Finding:
    if "loss" not in trial.found:
        to_do = "print 'loss 0.3', or name its pattern with --pattern '(?P<loss>…)'"
        return Finding(check="loss", ok=None, seen="not found", to_do=to_do)
    return Finding(check="loss", ok=True, seen=f"{trial.found['loss']:.4g}")


def _checkpoints(trial: Trial) -> Finding:
    if not trial.checkpoints:
        return Finding(
            check="checkpoints",
            ok=False,
            seen="none was written",
            to_do="save one more often, name them with --checkpoints 'out/step-*', or give "
            "--check-s more time",
        )
    path = os.path.relpath(trial.checkpoints[-1][0])
    return Finding(check="checkpoints", ok=True, seen=f"{path}{_interval(trial)}")


def _interval(trial: Trial) -> str:
    """Return how often checkpoints come, in words; empty: there was only one."""
    pairs = list(zip(trial.checkpoints, trial.checkpoints[1:], strict=False))
    if not pairs:
        return ""
    seconds = statistics.median(after[2] - before[2] for before, after in pairs)
    counts = [b[1].count - a[1].count for a, b in pairs if b[1].turn == a[1].turn]
    grain, unit = trial.account.grain, _unit(trial.account)
    if grain > 1:  # the log says only about where each was
        steps = statistics.fmean(counts) if counts else 0.0
        often = f"about every {steps:.3g} {unit}, " if steps > grain else ""
    else:
        steps = statistics.median(counts) if counts else 0.0
        often = f"every {steps:g} {unit}, " if steps > 0 else ""
    return f", {often}every {seconds:.2g} s: grace_s should be longer"


def _resumed(
    first: Trial,
    wrapped: running.Wrapped,
    environment: Mapping[str, str],
    limit_s: float,
    out: IO[bytes],
) -> Finding:
    """Start the command again, and compare where it begins with its newest checkpoint."""
    saved = first.memory.saved.get(first.newest or "")
    if saved is None or first.account.first is None:
        to_do = "see progress and checkpoints"
        return Finding(check="resume", ok=False, seen="cannot be checked", to_do=to_do)
    session.session.cache_clear()
    again = Trial(
        wrapped,
        {**environment, "BOA_GRACE_S": "0"},
        out,
        lambda trial: trial.account.first is not None,
        limit_s,
    )
    ended = again.follow()
    begins, at = again.account.first, _words(first.account, saved)
    if first.account.grain > 1:
        at = f"about {at}"
    if begins is None:
        how = f"exit code {ended.exit_code}" if ended.done or ended.exit_code else "too slow"
        return Finding(
            check="resume",
            ok=False,
            seen=f"started again, it printed no progress ({how})",
            to_do="check a longer training, or give --check-s more time",
        )
    if again.account.infers_epochs:
        return Finding(
            check="resume",
            ok=False,
            seen="started again, its bar begins anew: in the next epoch, or in the first one",
            to_do="print the epoch ('Epoch 3/10')",
        )
    fresh = _place(begins) == _place(first.account.first)
    if _place(begins) > _place(saved) or (_place(begins) == _place(saved) and not fresh):
        seen = f"started again, its first line is of {_words(again.account, begins)}; "
        seen += f"the checkpoint is of {at}"
        return Finding(check="resume", ok=True, seen=seen)
    return Finding(
        check="resume",
        ok=False,
        seen=f"started again, its first line is of {_words(again.account, begins)}; "
        f"the checkpoint is of {at}",
        to_do="load the newest checkpoint at the start, or have it named with "
        "--resume '--resume {checkpoint}'",
    )


def _gpus(wrapped: running.Wrapped) -> Iterator[Finding]:
    """Say what more GPUs may not change."""
    if not uses_width(wrapped.command):
        but = ", but --samples-per-step does" if "width" in wrapped.samples_per_step else ""
        yield Finding(
            check="GPUs",
            ok=None,
            seen=f"nothing in the command goes by the number of GPUs{but}",
            to_do="start it with torchrun, or pass {width} to it, unless it finds its GPUs itself",
        )
    if is_fixed(wrapped.command) and not wrapped.samples_per_step:
        yield Finding(
            check="batch",
            ok=None,
            seen="nothing in the command is calculated from the number of GPUs",
            to_do="if every GPU has its own batch: --samples-per-step '16*{width}', or "
            "--batch-size {256/width} in the command",
        )


def _words(account: Account, mark: Mark) -> str:
    if account.unit != "steps":
        return f"epoch {mark.count:g}"
    return f"epoch {mark.turn}, step {mark.count:g}" if mark.turn else f"step {mark.count:g}"


def _shown(line: str) -> str:
    line = re.sub(r"\s+", " ", line)
    return f"'{line[:LONGEST_EXAMPLE]}{'…' if len(line) > LONGEST_EXAMPLE else ''}'"
