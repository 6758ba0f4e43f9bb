"""Trials that outlive a run: in a file beside the checkpoints, and those of the class.

A process that runs out of memory has no time to tell anybody: it leaves a note, which the next run
reads and tells the service.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from boa.atomic_file import replace_file
from boa.model.layouts import OF_CLASS, Trial, trial_of, trials_of, with_trial
from boa.plain_file import read_plain

FILE, NOTE = "layouts.json", "out-of-memory-{}.json"
MOST_BYTES = 1024**2


class Journal:
    """Trials of one job. `home`: its checkpoint folder; None: they end with the process."""

    def __init__(self, home: Path | None, environment: Mapping[str, str] = os.environ) -> None:
        self._home = home
        self._of_class = trials_of(_json(environment.get(OF_CLASS, "")))
        self.trials: tuple[Trial, ...] = ()

    def open(self) -> list[Trial]:
        """On rank 0. Reads all there is; gives what the class does not know yet: what runs ran out
        of memory with."""
        own = _read(self._home / FILE) if self._home is not None else None
        self.trials = self._of_class
        for trial in trials_of(own):
            self._take(trial)
        notes = self._notes()
        found = [left for note in notes if (left := trial_of(_read(note)))]
        for left in found:
            self._take(left)
        if notes:
            self._write()
            for note in notes:
                with suppress(OSError):
                    note.unlink()
        return [left for left in found if not left.broken]

    def record(self, trial: Trial) -> None:
        """On rank 0."""
        self._take(trial)
        self._write()

    def note(self, trial: Trial, rank: int) -> None:
        """On any rank, as the last thing it does."""
        if self._home is not None:
            with suppress(OSError):
                self._home.mkdir(parents=True, exist_ok=True)
                _put(self._home / NOTE.format(rank), trial.as_row())

    def _take(self, trial: Trial) -> None:
        self.trials = with_trial(self.trials, trial)

    def _notes(self) -> list[Path]:
        return [] if self._home is None else sorted(self._home.glob(NOTE.format("*")))

    def _write(self) -> None:
        if self._home is not None:
            with suppress(OSError):  # a full disk: it is only of help
                self._home.mkdir(parents=True, exist_ok=True)
                _put(self._home / FILE, [trial.as_row() for trial in self.trials])


def _put(path: Path, document: object) -> None:
    replace_file(path, json.dumps(document), private=True)


def _read(path: Path) -> object:
    try:
        return _json(read_plain(path, most=MOST_BYTES).decode())
    except (OSError, UnicodeDecodeError):
        return None


def _json(text: str) -> object:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
