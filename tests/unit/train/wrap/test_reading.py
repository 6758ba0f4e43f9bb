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


@pytest.mark.parametrize(
    ("lines", "total"),
    [
        (["step 120/900"], 900),
        (["step 120 of 900 loss 0.3"], 900),
        ([" 12%|█▏  | 120/1000 [00:12<01:30, 9.8it/s]"], 1000),
        (["120/900 [=====>....] - ETA: 3s - loss: 0.3"], 900),
        (["Epoch 1/10", "Epoch 2/10"], 10),
        (["Epoch 1/10", "step 5/90"], None),
        (["epoch 1/10 step 5/90"], 900),
        (["Epoch: [0][120/390]"], None),
        (["Epoch 1/10", "step 90/90", "Epoch 2/10", "step 5/90"], 900),
        (["Epoch 1/2", "step 90/180", "Epoch 2/2", "step 95/180"], 180),
        (["step 120 loss 3"], None),
        (["step 120/100"], None),
        (["step 90/100", "step 110/100"], None),
    ],
)
def test_totals_are_read_in_the_unit_of_progress(
    begin: Begin, lines: list[str], total: float | None
) -> None:
    now = begin()
    heard(Account(Mark()), *lines)
    assert now.total == total


@pytest.mark.parametrize(
    "aside",
    [
        "Validation step 3/40",
        "Evaluating:  12%|█▏  | 12/100 [00:01<00:09, 9.8it/s]",
        "Validation DataLoader 0:  50%|█████  | 1/2 [00:00<00:00]",
        "  7%|▋   | 1/13 [00:00<00:01]",
        " 50%|▋   | 20/40 [00:00<00:01]",
        "Test: [10/40] loss 2.0",
    ],
)
def test_a_validation_is_neither_progress_nor_the_total(begin: Begin, aside: str) -> None:
    now = begin()
    heard(Account(Mark()), "step 5/900 loss 1", aside, "step 10/900 loss 1", aside)
    assert (now.units, now.total, now.loss) == (10, 900, 1.0)
    now = begin()
    heard(Account(Mark()), "step 5 loss 1", aside, "step 10 loss 1", aside)
    assert (now.units, now.total, now.loss) == (10, None, 1.0)


def test_a_bar_for_each_epoch_adds_up_without_a_word_about_epochs(begin: Begin) -> None:
    now = begin()
    account = Account(Mark(), totals=Totals(epochs=3))
    bars = (f"{100 * n // 40}%|██ | {n}/40 [00:12<01:30]" for n in (0, 20, 40, 0, 20, 40, 10))
    heard(account, *bars)
    assert (now.units, now.total) == (90, 120)


@pytest.mark.parametrize(
    ("command", "totals"),
    [
        ("t.py --max-steps 900", Totals(900, None)),
        ("t.py --max_steps=900 --epochs 3", Totals(900, 3)),
        ("t.py --num_train_epochs 3.0", Totals(None, 3)),
        ("t.py trainer.max_epochs=4 steps=7", Totals(7, 4)),
        ("t.py --max-steps -1 --epochs many", Totals()),
        ("t.py steps 10 --warmup-steps 5 --save_steps=9", Totals()),
        ("t.py --steps", Totals()),
    ],
)
def test_totals_are_read_in_the_arguments(command: str, totals: Totals) -> None:
    assert totals_of(command.split()) == totals


def test_an_argument_gives_the_total_in_the_unit_in_use(begin: Begin) -> None:
    now = begin()
    heard(Account(Mark(), totals=Totals(900, 3)), "step 5 loss 1", " 5%|▋ | 1/13 [00:00<00:01]")
    assert (now.total, now.units) == (900, 5)
    now = begin()
    heard(Account(Mark(), totals=Totals(None, 3)), "{'loss': 1.0, 'epoch': 0.5}")
    assert now.total == 3
    now = begin()
    heard(Account(Mark(), totals=Totals(900)), "step 905")
    assert now.total is None, "progress contradicts it"


@pytest.mark.parametrize(
    ("totals", "lines", "exited", "finished"),
    [
        (Totals(150), ["step 150"], False, True),
        (Totals(150), ["step 149"], True, False),
        (Totals(), ["step 150/150"], False, False),
        (Totals(), ["step 150/150"], True, True),
        (Totals(), ["100%|██| 150/150 [00:12<00:00]"], True, False),
        (Totals(), ["epoch 2/2 step 50/50"], False, True),
        (Totals(), ["epoch 1/2 step 50/50"], True, False),
        (Totals(), ["{'loss': 1, 'epoch': 2.5}"], True, False),
        (Totals(None, 3), ["{'loss': 1, 'epoch': 2.5}", "{'loss': 1, 'epoch': 3.0}"], False, True),
    ],
)
def test_only_a_total_that_is_surely_the_whole_jobs_finishes_it(
    begin: Begin, totals: Totals, lines: list[str], exited: bool, finished: bool
) -> None:
    begin()
    account = Account(Mark(), totals=totals)
    heard(account, *lines)
    assert account.finished(exited=exited) == finished


def test_samples_count_right_when_the_width_changes(begin: Begin) -> None:
    now = begin()
    first = Account(Mark(), per_step=16)
    heard(first, "step 100/900")
    assert (now.units, now.total) == (1600, 900 * 16)
    now = begin()
    wider = Account(first.now, first.first_epoch, unit=first.unit, per_step=64)
    heard(wider, "step 110/900")
    assert (now.units, now.at.progress) == (640, 2240)
    assert now.total == 2240 + 790 * 64
    now = begin()
    older = Account(wider.now, wider.first_epoch, unit=wider.unit, per_step=16)
    heard(older, "step 55/900")
    assert (now.units, now.at.progress) == (0, 1120), "the share of an older checkpoint"


def test_epochs_are_not_counted_twice_after_a_restart(begin: Begin) -> None:
    now = begin()
    first = Account(Mark())
    heard(first, "Epoch 1 loss 0.9", "Epoch 2 loss 0.8", "Epoch 3 loss 0.7")
    assert now.at.progress == 3
    now = begin()
    heard(Account(first.now, first.first_epoch, unit=first.unit), "Epoch 4 loss 0.6")
    assert (now.units, now.at.progress) == (1, 4)


def test_progress_within_epochs_is_not_counted_twice_after_a_restart(begin: Begin) -> None:
    now = begin()
    first = Account(Mark())
    heard(first, "Epoch: [0][390/390]", "Epoch: [1][100/390]")
    now = begin()
    heard(Account(first.now, first.first_epoch, unit=first.unit), "Epoch: [1][110/390]")
    assert (now.units, now.at.progress) == (10, 500)


@pytest.mark.parametrize(
    ("line", "ready"),
    [
        ("Epoch 1/10", True),
        ("Epoch 1 loss 0.5", False),  # at the end of a first epoch of an hour
        ("0%|  | 0/1000 [00:00<?]", True),
        ("step 1", True),
        ("step 5", False),  # five steps are no part of the rescaling, however short they are
        ("step 500", False),
    ],
)
def test_ready_is_told_where_training_begins_and_not_an_hour_later(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, line: str, ready: bool
) -> None:
    """The service takes a report without progress for the end of the rescaling."""
    now = begin()
    told: list[float] = []
    monkeypatch.setattr(now, "_send", lambda **_: told.append(now.units))
    heard(Account(Mark()), line)
    assert (told[0] == 0) == ready


@pytest.mark.parametrize(
    ("written_s", "count"),
    [
        (0.0, 0),  # before the first line
        (19.0, 5),
        (20.0, 10),
        (29.0, 10),
        (29.8, 15),  # saved at step 15, and then printed
        (99.0, 15),
    ],
)
def test_a_checkpoint_is_where_the_line_before_it_was_or_the_one_right_after(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, written_s: float, count: int
) -> None:
    begin()
    account = Account(Mark())
    for number, line in enumerate(("step 5", "step 10", "step 15"), 1):
        monkeypatch.setattr("boa.train.wrap.account.time.time", lambda at=10.0 * number: at)
        heard(account, line)
    assert account.at(written_s).count == count
    assert account.grain == 5


def test_headers_of_epochs_are_no_steps_whatever_ranks_lag_behind(begin: Begin) -> None:
    now = begin()
    lines = (
        "Epoch 49/50",
        "step 5",
        "step 5",
        "step 10",
        "Epoch 50/50",
        "step 10",
        "step 5",
        "step 7",
    )
    heard(Account(Mark(turn=48), 1, unit="steps"), *lines)
    assert now.units == 17


def test_epochs_that_print_one_count_each_add_up(begin: Begin) -> None:
    now = begin()
    heard(
        Account(Mark()), "Epoch 1/3", "step 100", "Epoch 2/3", "step 100", "Epoch 3/3", "step 100"
    )
    assert now.units == 300


def test_a_bar_that_begins_again_after_a_restart_is_the_next_epochs(begin: Begin) -> None:
    now = begin()
    first = Account(Mark())
    bars = [f"{100 * n // 40}%|██ | {n}/40 [00:12<01:30]" for n in (0, 20, 40)]
    heard(first, *bars, *bars)
    now = begin()
    heard(Account(first.now, first.first_epoch, unit=first.unit), *bars)
    assert (now.units, now.at.progress) == (40, 120)
