"""One run of the local engine, as its folder tells it.

Whatever is found there, it answers: what is damaged, or is no plain file, costs this run at most.
"""

import os
import re
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from boa.engines.last_words import last_words_of
from boa.engines.processes import orphans, run_files, run_marks, run_supervisor
from boa.model.runs import RunEvent, RunKey
from boa.units import Seconds

NOBODY = "0.0.0"
"""Who takes a run so that no supervisor can."""
MOST_OUTCOME_BYTES = 4096
_STAGES = (run_supervisor.LEFT, run_supervisor.UP, run_supervisor.CLAIMED)
_TAKEN = re.compile(rf"({'|'.join(_STAGES)})\.([0-9]{{1,10}}\.[0-9]{{1,20}}\.[0-9a-z]{{1,40}})")
_OUTCOME = re.compile(
    rf"(-?[0-9]{{1,10}}|)\n([01]{run_files.DONE}?|{run_files.LOST})\n([^\n]*)\n", re.DOTALL
)


@dataclass(slots=True, eq=False)
class LocalRun:
    key: RunKey
    folder: str
    mark: int
    cgroup: str
    """Where there may be a control group of its own, unless another service has said otherwise."""
    found_again: bool = False
    """Begun by an engine before this one."""
    supervisor: str = ""
    """PID, or PID.TICKS.BOOT where it is not ours; empty while there is none."""
    ours: bool = False
    """A child of this process: its number is nobody else's until we have heard of its end."""
    warm_until: Seconds | None = None
    """A warm parent was asked for a supervisor, which is waited for until then (monotonic)."""
    ask_until: Seconds | None = None
    """Found again before it had begun: nobody waits longer for it to be asked for (monotonic)."""
    unasked: bool = False
    """Nobody did."""
    up_told: bool = False
    saved_told: Seconds | None = None
    """When it saved last, as far as that was seen."""
    saved_news: bool = False
    """Whether that checkpoint is not reported yet."""
    grace_s: Seconds | None = None
    """It was asked to stop, with this grace."""
    prepared_s: Seconds = 0.0
    """How long it was left to go on before that, while the next run was prepared."""
    kill_at: Seconds | None = None
    """Moment (monotonic) from which the service kills it itself: its supervisor should have."""
    overdue: bool = False
    """That moment has come."""
    dead: bool = False
    """Its supervisor is no more, and none will come."""
    dead_since: Seconds | None = None
    """When that was seen (monotonic)."""
    look_at: Seconds = 0.0
    """When to look again for what is left of it (monotonic)."""
    hindrance: str = ""
    """Processes that cannot be ended, in words: they keep it from being over …"""
    hindrance_told: str = ""
    """… as it was told last."""
    end: RunEvent | None = None
    secrets: bytes = field(default=b"", repr=False)
    """For its supervisor, until there is one: they are in no file."""

    @property
    def pid(self) -> int:
        return int(self.supervisor.partition(".")[0])

    @property
    def news(self) -> RunEvent | None:
        """Its hindrance, once."""
        if self.hindrance == self.hindrance_told:
            return None
        self.hindrance_told = self.hindrance
        return RunEvent(key=self.key, ended=False, hindrance=self.hindrance)

    @property
    def is_supervised(self) -> bool:
        """Whether who has taken it lives; of one that is ours and has not, nothing is known."""
        return bool(self.supervisor) and run_supervisor.identity(self.pid) == self.supervisor

    def state(self) -> tuple[str, str]:
        """How far it is, and by whom: see `run_supervisor`. Other names mean nothing."""
        try:
            names = os.listdir(self.folder)
        except OSError:  # deleted, or no folder
            return "", ""
        taken = [(match[1], match[2]) for match in map(_TAKEN.fullmatch, names) if match]
        if taken:
            return min(taken, key=lambda found: _STAGES.index(found[0]))
        return (run_supervisor.LAUNCH, "") if run_supervisor.LAUNCH in names else ("", "")

    def signal_supervisor(self, *numbers: int) -> bool:
        """Whether it has a supervisor, or one that is on its way."""
        supervisor = self.state()[1] or self.supervisor
        if not supervisor:
            return False
        pid = int(supervisor.partition(".")[0])
        if supervisor == run_supervisor.identity(pid) or (self.ours and supervisor == str(pid)):
            with suppress(ProcessLookupError):
                for number in numbers:
                    os.kill(pid, number)
        return True

    def asked_to_stop(self, grace_s: Seconds, kill_at: Seconds) -> None:
        self.grace_s = grace_s
        self.kill_at = kill_at if self.kill_at is None else min(kill_at, self.kill_at)

    def take_over(self) -> None:
        """So that no supervisor can have it, unless one is quicker."""
        with suppress(OSError):
            claimed = f"{run_supervisor.CLAIMED}.{NOBODY}"
            os.rename(
                os.path.join(self.folder, run_supervisor.LAUNCH), os.path.join(self.folder, claimed)
            )

    def give_up(self, now: Seconds) -> None:
        """It is over if nobody asks for it, unless a supervisor has it."""
        if self.ask_until is None or now < self.ask_until or self.dead:
            return
        self.ask_until = None
        if not self.supervisor and self.state()[0] == run_supervisor.LAUNCH:
            self.take_over()
            _, self.supervisor = self.state()
            self.dead = self.unasked = not self.is_supervised

    def launched(self) -> dict[str, Any] | None:
        """The launch as the engine wrote it; None where that is gone or damaged."""
        for _ in range(len(_STAGES) + 1):  # a supervisor may rename it at any moment
            path = os.path.join(self.folder, ".".join(filter(None, self.state())))
            try:
                return run_files.unpacked(run_files.read_plain(path))
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                return None
        return None

    def traces(self) -> orphans.Traces:
        """Everything that its processes can be found by."""
        launched = self.launched() or {"plans": []}
        return orphans.Traces(
            environ=next((orphans.marks_of(plan["env"]) for plan in launched["plans"]), None),
            supervisor="" if self.ours else self.supervisor,
            mark=self.mark,
            folder=self.folder,
            cgroup=launched.get("cgroup", self.cgroup),
        )

    def look_for_saved(self) -> None:
        at = run_files.saved_at(self.folder)
        self.saved_news = at is not None and at != self.saved_told
        self.saved_told = at

    def look_for_left(self) -> None:
        """Look whether its supervisor waits for processes that it cannot end."""
        stage, supervisor = self.state()
        if stage == run_supervisor.LEFT:
            pids = run_marks.children(int(supervisor.partition(".")[0]))
            self.hinder(orphans.named(pids))

    def hinder(self, left: str) -> None:
        self.hindrance = f"{left} of attempt {self.key.attempt} cannot be ended"

    def outcome(self) -> RunEvent | None:
        """How it ended, where that is written down."""
        path = os.path.join(self.folder, run_files.OUTCOME)
        try:
            text = run_files.read_plain(path, MOST_OUTCOME_BYTES).decode("utf-8", "replace")
        except FileNotFoundError:
            return None
        except OSError as trouble:
            return self.lost(f"how it ended cannot be read ({trouble.strerror})")
        match = _OUTCOME.match(text)
        if match is None:
            what = "garbled" if text.strip("\0 \n") else "empty"
            return self.lost(f"how it ended is {what}")
        code, how, reason = match.groups()
        exit_code = int(code) if code else None
        return RunEvent(
            key=self.key,
            ended=True,
            exit_code=exit_code,
            stopped=how[:1] == "1",
            run_lost=how == run_files.LOST,
            done=how.endswith(run_files.DONE),
            saved=run_files.saved_at(self.folder) is not None,
            reason=reason.strip(),
            prepared_s=self.prepared_s,
            said=last_words_of(self.folder, exit_code, reason) if how[:1] == "0" else "",
        )

    def write_down(self) -> None:
        """Its end, for who finds it again."""
        assert self.end is not None
        with suppress(OSError):  # a full disk: it is found again to be lost
            run_files.write_outcome(
                self.folder,
                self.end.exit_code,
                self.end.stopped,
                self.end.reason,
                self.end.run_lost,
            )

    def lost(self, why: str, *, blameless: bool = True) -> RunEvent:
        return RunEvent(key=self.key, ended=True, run_lost=blameless, reason=f"lost: {why}")

    def unexplained(self) -> RunEvent:
        """The end of a dead run that is not written down, as far as its files tell."""
        if self.overdue:
            late = f"killed by the service: still there {self.grace_s or 0:g} s after SIGTERM"
            return RunEvent(
                key=self.key,
                ended=True,
                exit_code=-signal.SIGKILL,
                stopped=True,
                reason=f"{late}, and its supervisor did not see to it",
            )
        if self.unasked:
            return self.lost("the disk has forgotten that it had begun")
        stage, supervisor = self.state()
        launched = self.launched()
        if not stage:
            return self.lost("what was written of it is gone")
        boot = supervisor.rpartition(".")[2]
        if supervisor == NOBODY and launched is not None:
            boot = launched.get("boot", orphans.boot())
        elif supervisor == NOBODY:
            return self.lost("what it was to run is damaged")
        if boot != orphans.boot():
            return self.lost("the machine restarted")
        if supervisor == NOBODY:
            return self.lost("its supervisor could not be started", blameless=False)
        why = "its supervisor was killed, or the machine restarted"
        return self.lost(why, blameless=False)
