"""A checkpoint is complete or invisible."""

import json
import os
from pathlib import Path

import pytest

from boa.train import Progress, checkpoints
from boa.train.checkpoints import (
    Manifest,
    begin,
    latest,
    manifest_at,
    newest_first,
    progress_at,
    publish,
    remove_leftovers,
    written,
)
from training import run_alone


def save(home: Path, text: str, progress: Progress = Progress()) -> Path:  # noqa: B008
    with written(home, progress) as folder:
        (folder / "part").mkdir()
        (folder / "part" / "model").write_text(text)
    found = latest(home)
    assert found is not None
    return found


def test_the_newest_is_found_with_all_that_was_written_and_how_far_training_was(
    tmp_path: Path,
) -> None:
    home = tmp_path / "not" / "there yet"
    assert latest(home) is None
    save(home, "first")
    newest = save(home, "second", Progress(3, 17.5, 99))
    assert (newest / "part" / "model").read_text() == "second"
    assert progress_at(newest) == Progress(3, 17.5, 99)


def test_the_manifest_of_a_plain_script_is_as_ever_and_others_say_more(tmp_path: Path) -> None:
    plain = save(tmp_path, "plain", Progress(3, 17.5, 99))
    document = json.loads((plain / checkpoints.MANIFEST).read_text())
    assert document == {"version": 1, "epoch": 3, "progress": 17.5, "step": 99}
    assert manifest_at(plain) == Manifest(Progress(3, 17.5, 99))
    more = Manifest(Progress(4), 8, {"stop": 0.25})
    assert manifest_at(publish(begin(tmp_path), more)) == more
    assert newest_first(tmp_path) == [latest(tmp_path), plain]


def test_the_two_newest_are_kept(tmp_path: Path) -> None:
    for number in range(12):
        save(tmp_path, str(number))
    kept = sorted(path for path in tmp_path.iterdir())
    assert [(path / "part" / "model").read_text() for path in kept] == ["10", "11"]


def test_a_save_that_fails_publishes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    before = save(tmp_path, "good")

    def fail() -> None:
        with written(tmp_path, Progress()) as folder:
            (folder / "model").write_text("ba")
            Path("/dev/full").write_text("d")

    with pytest.raises(OSError, match="No space"):
        fail()
    assert latest(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == [before.name]


def test_a_checkpoint_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = os.fsync, Path.rename

    def fsync(fd: int) -> None:
        done.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        sync(fd)

    def renamed(path: Path, target: Path) -> Path:
        done.append(f"→ {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", renamed)
    save(tmp_path, "text")
    published = done.index("→ checkpoint-00000001")
    assert {"model", "part", checkpoints.MANIFEST} <= set(done[:published])
    assert done[published + 1 :] == [tmp_path.name]


def test_what_is_no_whole_checkpoint_is_passed_over(tmp_path: Path) -> None:
    good = save(tmp_path, "good")
    (tmp_path / "checkpoint-00000007").mkdir()
    (tmp_path / "checkpoint-00000008").mkdir()
    (tmp_path / "checkpoint-00000008" / checkpoints.MANIFEST).write_text('{"epoch": 1')
    (tmp_path / "checkpoint-later").mkdir()
    (tmp_path / "checkpoint-00000009").write_text("a file")
    assert latest(tmp_path) == good


def test_leftovers_of_interrupted_saves_are_removed_and_checkpoints_are_not(tmp_path: Path) -> None:
    good = save(tmp_path, "good")
    with written(tmp_path, Progress()) as folder:
        leftovers = [tmp_path / folder.name, tmp_path / ".boa-old-checkpoint-00000001"]
    for leftover in leftovers:
        leftover.mkdir()
        (leftover / "model").write_text("ha")
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {good.name, "checkpoint-00000002"}


SAVER = """
import os, random, signal, time
from pathlib import Path
from boa.train.checkpoints import Progress, latest, progress_at, written

home, chance = Path(sys.argv[1]), random.Random(6)
os.fsync = lambda fd: None  # what matters to a machine that goes down, and would take all the time

def save_on_and_on(writer):
    number = int((latest(home) / "0").read_text()) if latest(home) else 0
    while True:
        number += 1
        with written(home, Progress(step=number)) as folder:
            for part in range(5):
                (folder / str(part)).write_text(str(number))
        os.write(writer, b".")

for round in range(60):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        save_on_and_on(writer)
    if round % 2:  # else it may be killed before it has saved anything
        os.read(reader, 1)
    time.sleep(chance.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    found = latest(home)
    if found:
        parts = {(found / str(part)).read_text() for part in range(5)}
        assert parts == {str(progress_at(found).step)}, (found, parts)
    print(found.name if found else "", sum(p.name.startswith(".") for p in home.iterdir()))
"""


def test_a_process_killed_while_saving_never_leaves_half_a_checkpoint(tmp_path: Path) -> None:
    """Sixty kills at seeded moments, while one save follows the other."""
    rounds = [line.split() for line in run_alone(SAVER, str(tmp_path)).splitlines()]
    assert len(rounds) == 60
    names = [line[0] for line in rounds if len(line) == 2]
    assert names == sorted(names)  # never falls back
    assert len(set(names)) > 20
    assert int(rounds[-1][-1]) > 1  # the kills did interrupt saves
