"""A log is read on whatever happens to its files."""

import os
from collections.abc import Sequence
from pathlib import Path

from boa.model.runs import LogFile
from boa.server.http.log_files import NOTICE, size_of
from boa.server.http.log_stream import LogReader, log_offset


class Log:
    """A worker's log in two parts, as the local engine keeps it."""

    def __init__(self, folder: Path) -> None:
        self.new, self.old = folder / "0.log", folder / "0.old.log"
        self.stale = False

    def write(self, text: str) -> None:
        with self.new.open("a") as log:
            log.write(text)

    def turn(self) -> None:
        self.new.rename(self.old)

    def files(self) -> Sequence[LogFile]:
        """`stale`: a list that was begun before a turn and is looked at after it."""
        found = [path for path in (self.old, self.new) if path.exists()]
        if self.stale:
            self.stale = False
            self.write("end\n")
            self.turn()
            self.write("second\n")
        return [LogFile(attempt=1, rank=0, path=path) for path in found]


def read_all(reader: LogReader) -> bytes:
    return b"".join(iter(reader.more, b""))


def test_what_was_written_before_a_turn_is_read_after_it(tmp_path: Path) -> None:
    log = Log(tmp_path)
    reader = LogReader(log.files, 0)
    log.write("first\n")
    assert read_all(reader) == b"first\n"
    log.write("end\n")
    log.turn()
    log.write("second\n")
    assert read_all(reader) == b"end\nsecond\n"
    reader.close()


def test_a_turn_while_files_are_listed_loses_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path)
    reader = LogReader(log.files, 0)
    log.write("first\n")
    assert read_all(reader) == b"first\n"
    log.stale = True
    assert read_all(reader) == b"end\nsecond\n"
    reader.close()


def test_a_file_that_is_gone_is_read_to_its_end_and_the_next_follows(tmp_path: Path) -> None:
    log = Log(tmp_path)
    reader = LogReader(log.files, 2)
    log.write("first\n")
    assert read_all(reader) == b"rst\n"
    log.write("end\n")
    log.turn()
    log.write("second\n")
    log.turn()  # over the old one
    log.write("third\n")
    assert read_all(reader) == b"end\nsecond\nthird\n"
    reader.close()


def test_who_comes_back_after_the_log_was_cut_gets_its_last_lines(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write("first\nsecond\n")
    seen = len("first\nsecond\n")
    assert log_offset(log.files(), 1, seen) == seen, "nothing new"
    log.turn()
    log.write("third\n")
    assert log_offset(log.files(), 1, seen) == seen, "all of it is still there"
    log.turn()  # and the first part is gone
    log.write("4\n")
    assert log_offset(log.files(), 1, seen) == len("third\n")
    assert log_offset(log.files(), None, seen) == seen, "who wants no last lines gets none"


def test_a_hole_that_the_job_made_with_truncate_is_left_out_and_said(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write("printed\n")
    os.truncate(log.new, 2**40)
    shown = b"printed\n" + NOTICE
    for skip in range(len(shown) + 1):
        reader = LogReader(log.files, skip)
        assert read_all(reader) == shown[skip:], "wherever it begins"
        reader.close()
    assert size_of(log.files()[0]) == len(shown)
    assert log_offset(log.files(), 1) == 0
    assert log_offset(log.files(), 0) == len(shown)


def test_a_log_that_gets_a_hole_while_it_is_read_goes_on_once_it_is_whole(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write("first\n")
    reader = LogReader(log.files, 0)
    assert read_all(reader) == b"first\n"
    os.truncate(log.new, 2**40)
    assert read_all(reader) == NOTICE
    assert read_all(reader) == b"", "said once"
    os.truncate(log.new, len("first\n"))
    log.write("second\n")
    assert read_all(reader) == b"second\n"
    reader.close()
