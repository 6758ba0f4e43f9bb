"""A restarted script goes on where its checkpoint was."""

from pathlib import Path

import pytest

from boa import train
from boa.train import Progress
from unit.train.test_reports import MakeSession, begin

assert begin  # a fixture


def test_a_restarted_script_goes_on_where_its_checkpoint_was(
    tmp_path: Path, begin: MakeSession
) -> None:
    begin(BOA_CHECKPOINT_DIR=tmp_path, BOA_EPOCHS=4)
    assert train.resume() == Progress()
    for _ in zip(range(2), train.epochs(), strict=False):
        train.report(samples=10)
    train.report(samples=5, step=25)
    with train.new_checkpoint() as folder:
        (folder / "model").write_text("weights")
    train.report(samples=5, step=26)  # lost: after the checkpoint

    again = begin(BOA_ATTEMPT=2)
    assert train.resume() == Progress(1, 15.0, 25)
    assert again.units == 0.0
    found = train.latest_checkpoint()
    assert found is not None
    assert (found / "model").read_text() == "weights"
    progress = []
    for epoch in train.epochs():
        progress.append((epoch, again.at.progress))
        train.report(samples=1)
    assert progress == [(1, 15.0), (2, 0.0), (3, 0.0)]


def test_who_counts_from_the_first_epoch_though_there_is_a_checkpoint_is_told(
    tmp_path: Path, begin: MakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(BOA_CHECKPOINT_DIR=tmp_path, BOA_EPOCHS=1)
    assert list(train.epochs()) == [0]
    with train.new_checkpoint():
        pass
    begin(BOA_ATTEMPT=2)
    train.resume()
    list(train.epochs())
    assert capsys.readouterr().err == ""
    begin(BOA_ATTEMPT=3)
    assert list(train.epochs()) == [0]
    assert "call train.resume()" in capsys.readouterr().err


def test_rank_0_removes_what_an_interrupted_save_has_left_and_the_others_do_not(
    tmp_path: Path, begin: MakeSession
) -> None:
    leftover = tmp_path / ".boa-new-1-1-1"
    leftover.mkdir()
    begin(BOA_CHECKPOINT_DIR=tmp_path, RANK=1)
    train.resume()
    with train.new_checkpoint() as folder:
        (folder / "model").write_text("weights")
    assert train.latest_checkpoint() is None
    assert leftover.exists()
    begin(RANK=0)
    train.latest_checkpoint()
    assert leftover.exists()  # it may be looked for while another process writes
    train.resume()
    assert not leftover.exists()
