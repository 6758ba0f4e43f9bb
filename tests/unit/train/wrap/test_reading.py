"""Logs as people write them tell a job's progress, over restarts too."""

import re
from collections.abc import Callable

import pytest

from boa.train import session, stopping
from boa.train.checkpoints import Progress
from boa.train.session import Session
from boa.train.wrap.account import Account, Mark
from boa.train.wrap.reading import USUAL, Totals, find, totals_of

Begin = Callable[..., Session]


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Begin:
    def make(epochs: int = 1) -> Session:
        monkeypatch.setenv("BOA_EPOCHS", str(epochs))
        monkeypatch.setattr(stopping, "listen", lambda: None)
        new = Session()
        monkeypatch.setattr(session, "session", lambda: new)
        return new

    return make


def heard(account: Account, *lines: str) -> None:
    for line in lines:
        account.hear(find(line, USUAL))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("step 120 loss 0.31", {"step": 120, "loss": 0.31}),
        (
            "[rank0] Iteration: 1,200/9,000, train_loss=1e-3",
            {"step": 1200, "total": 9000, "loss": 0.001},
        ),
        ("{'loss': 2.5, 'grad_norm': 1.0, 'epoch': 0.25}", {"loss": 2.5, "epoch": 0.25}),
        (
            "Epoch: [3][120/390]  Time 0.1 Loss 2.30 (2.4)",
            {"epoch": 3, "progress": 120, "total": 390, "loss": 2.3},
        ),
        (" 12%|█▏  | 120/1000 [00:12<01:30, 9.8it/s]", {"step": 120, "total_of_bar": 1000}),
        ("global_step=7", {"step": 7}),
        ("Loading checkpoint shards: done", {}),
        ("stepping back, lossless", {}),
    ],
)
def test_the_usual_logs_are_read_without_a_pattern(line: str, found: dict[str, float]) -> None:
    assert find(line, USUAL) == found


def test_steps_count_once_however_many_ranks_print_them(begin: Begin) -> None:
    now = begin()
    heard(Account(Mark()), "step 5", "step 5", "step 10", "step 9", "step 10", "loss 3")
    assert (now.units, now.at.progress, now.step, now.loss) == (10, 10, 10, 3)


def test_steps_that_begin_again_with_each_epoch_add_up(begin: Begin) -> None:
    now = begin(epochs=3)
    lines = "epoch 1 step 50", "epoch 1 step 100", "epoch 2 step 40", "epoch 2 step 100"
    heard(Account(Mark()), *lines)
    assert (now.units, now.at) == (200, Progress(1, 100, 100))
    now = begin(epochs=1)
    heard(Account(Mark()), *lines)
    assert now.at == Progress(0, 200, 100)


def test_steps_over_the_whole_training_are_parted_by_epochs(begin: Begin) -> None:
    now = begin(epochs=2)
    heard(Account(Mark()), "epoch 0 step 100", "epoch 1 step 130")
    assert (now.units, now.at) == (130, Progress(1, 30, 130))


def test_parts_of_an_epoch_are_progress_where_there_is_nothing_else(begin: Begin) -> None:
    now = begin()
    heard(Account(Mark()), "{'loss': 1.0, 'epoch': 0.5}", "{'loss': 1.0, 'epoch': 1.25}")
    assert now.units == 1.25


def test_after_a_restart_only_what_is_new_counts(begin: Begin) -> None:
    now = begin()
    heard(Account(Mark(Progress(0, 118, 118), 0, 118, 118)), "step 120", "step 130")
    assert (now.units, now.at.progress) == (12, 130)


def test_a_script_that_goes_on_from_an_older_checkpoint_is_set_back(begin: Begin) -> None:
    now = begin()
    heard(Account(Mark(Progress(0, 118, 118), 0, 118, 118)), "step 105", "step 110")
    assert (now.units, now.at.progress) == (5, 110)


def test_a_checkpoint_that_nobody_saw_being_made_gives_nothing_for_free(begin: Begin) -> None:
    now = begin()
    heard(Account(None), "step 500", "step 510")
    assert (now.units, now.at.progress) == (10, 510)


def test_a_pattern_of_ones_own_names_its_metrics(begin: Begin) -> None:
    now = begin()
    pattern = re.compile(r"it=(?P<step>\d+) acc=(?P<accuracy>\S+)")
    Account(Mark()).hear(find("it=3 acc=0.5", [pattern]))
    assert (now.units, now.metrics) == (3, {"accuracy": 0.5})


def test_a_number_beyond_all_counting_is_none(begin: Begin) -> None:
    begin(epochs=3)
    account = Account(Mark())
    heard(account, "epoch 1e999 step 1e999 loss 0.5", "epoch 1 step 7")
    assert session.session().at.step == 7
