"""A script's checkpoints are told once they are whole."""

import os
import subprocess
from pathlib import Path

from boa.train.wrap import processes
from boa.train.wrap.watching import USUAL, Watch


def touch(path: Path, text: str = "x", age_s: float = 0.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age_s))


def told(watch: Watch) -> list[str]:
    return [path for path, _ in watch.changing()]


def test_a_checkpoint_is_whole_once_it_rests(tmp_path: Path) -> None:
    watch = Watch(str(tmp_path), USUAL, settle_s=0.0)
    assert told(watch) == watch.whole() == []
    touch(tmp_path / "out" / "checkpoint-5" / "model.bin")
    assert told(watch) == watch.whole() == [str(tmp_path / "out" / "checkpoint-5")]
    assert told(watch) == watch.whole() == []
    patient = Watch(str(tmp_path), USUAL, settle_s=1e6)
    touch(tmp_path / "out" / "checkpoint-5" / "optimizer.bin")
    assert len(told(patient)) == 1
    assert patient.whole() == []
    assert len(patient.whole(over=True)) == 1


def test_a_file_written_again_is_a_new_checkpoint(tmp_path: Path) -> None:
    touch(tmp_path / "last.pt", age_s=60)
    watch = Watch(str(tmp_path), USUAL, settle_s=0.0)
    assert watch.newest() == str(tmp_path / "last.pt")
    touch(tmp_path / "last.pt", "more")
    assert told(watch) == watch.whole() == [str(tmp_path / "last.pt")]


def test_what_is_inside_a_checkpoint_is_part_of_it_and_other_files_are_none(tmp_path: Path) -> None:
    watch = Watch(str(tmp_path), ["runs/*", "runs/*/*.pt"], settle_s=0.0)
    touch(tmp_path / "runs" / "a" / "model.pt")
    touch(tmp_path / "data.csv")
    (tmp_path / "runs" / "empty").mkdir()
    assert told(watch) == [str(tmp_path / "runs" / "a")]


def test_a_file_that_is_put_in_its_place_is_whole_at_once(tmp_path: Path) -> None:
    watch = Watch(str(tmp_path), USUAL, settle_s=1e6)
    for text in ("first", "second"):  # a script that saves faster than anything could rest
        touch(tmp_path / "last.part", text, age_s=1e-3)
        os.replace(tmp_path / "last.part", tmp_path / "last.pt")
        assert told(watch) == watch.whole() == [str(tmp_path / "last.pt")]


def test_a_small_file_that_is_put_in_its_place_is_whole_once_nobody_has_it_open(
    tmp_path: Path,
) -> None:
    path, open_ones = tmp_path / "last.pt", set()
    watch = Watch(str(tmp_path), USUAL, settle_s=1e6, is_open=lambda each: each in open_ones)
    no_later_s = -60.0  # as on a coarse clock, its times do not tell that it was renamed
    touch(path, "first", age_s=no_later_s)
    assert told(watch) == [str(path)]
    assert watch.whole() == [], "it may be written to once more"
    for text in ("second", "the third"):
        touch(tmp_path / "last.part", text, age_s=no_later_s)
        os.replace(tmp_path / "last.part", path)
        open_ones.add(str(path))
        assert told(watch) == [str(path)]
        assert watch.whole() == [], "deleted and written anew, it is not whole yet"
        open_ones.clear()
        assert watch.whole() == [str(path)]
    touch(path, "the fourth, in place", age_s=no_later_s)
    assert told(watch) == [str(path)]
    assert watch.whole() == []


def test_a_file_is_open_while_a_process_or_one_that_it_began_has_it(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    path.touch()
    assert not processes.have_open(os.getpid(), str(path))
    holds = ["sh", "-c", 'exec 3<"$0"; echo held; read line', str(path)]
    with subprocess.Popen(holds, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert processes.have_open(os.getpid(), str(path))
        child.communicate(b"\n")
    assert not processes.have_open(os.getpid(), str(path))
