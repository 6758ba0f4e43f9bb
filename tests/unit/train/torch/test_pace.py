"""Batch sizes are chosen beside the training: it never waits for a fit."""

import threading

import pytest
import torch

from boa.goodput.tuning import Setting
from boa.train.torch import pace
from boa.train.torch.noise import Statistics
from boa.train.torch.pace import Pace
from boa.train.torch.ranks import Ranks
from boa.train.torch.tuner import Tuner

NOISY = Statistics(1.0, 9.0, 64)
CALM = Statistics(9.0, 0.01, 64)


class SlowTuner(Tuner):
    """Chooses when it is allowed to; in which thread is remembered."""

    allowed = threading.Event()
    by: threading.Thread | None = None

    def choose(self, *, nodes: int, gpus: int, statistics: Statistics | None) -> Setting:
        self.by = threading.current_thread()
        assert self.allowed.wait(300)
        if statistics is CALM:
            raise ArithmeticError("no fit")
        return Setting(128, 0)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Pace:
    monkeypatch.setattr(pace, "WINDOW", 1)
    monkeypatch.setattr(pace, "WINDOW_S", 0.0)
    job = SlowTuner(base_batch=64, max_batch=4096, local_batch=(8, 256))
    job.allowed = threading.Event()
    return Pace(Ranks(0, 1, 0, 1, torch.device("cpu")), job, Setting(64, 0))


def begun(slow: Pace, statistics: Statistics) -> SlowTuner:
    for _ in range(pace.SKIPPED + 2):
        slow.stepped(full=True)
    assert slow.proposal(statistics) is None
    assert isinstance(slow.tuner, SlowTuner)
    return slow.tuner


def finished(job: SlowTuner) -> None:
    (thread,) = (one for one in threading.enumerate() if one.name == "boa-tuner")
    job.allowed.set()  # from here on it may be gone at any moment
    thread.join(300)


def test_training_goes_on_while_a_batch_size_is_chosen(slow: Pace) -> None:
    job = begun(slow, NOISY)
    seen = job.state_dict()
    for _ in range(50):
        slow.stepped(full=True)
        assert slow.proposal(NOISY) is None
    assert sum(one.name == "boa-tuner" for one in threading.enumerate()) == 1
    assert job.state_dict() == seen, "nothing is told to a tuner that is choosing"
    finished(job)
    assert job.by is not threading.main_thread()
    assert slow.proposal(NOISY) == Setting(128, 0)
    assert slow.proposal(NOISY) is None
    assert job.state_dict() == seen, "steps beside a choice are not measured"


def test_a_choice_that_was_overtaken_is_dropped(slow: Pace) -> None:
    job = begun(slow, NOISY)
    slow.adopt(Setting(32, 0))
    finished(job)
    assert slow.proposal(NOISY) is None


def test_what_goes_wrong_beside_the_training_is_told_there(slow: Pace) -> None:
    finished(begun(slow, CALM))
    with pytest.raises(ArithmeticError, match="no fit"):
        slow.proposal(CALM)
