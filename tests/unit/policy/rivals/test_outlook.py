"""What the rest of a job takes, on any GPUs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boa.model.cluster import ClusterView
from boa.policy.rivals.outlook import LOOK_AHEAD, Outlook, Outlooks, each_alone, next_look
from lone_jobs import TYPES, Curves, job


def outlook(curves: Curves, *work: float) -> Outlook:
    found = Outlooks(TYPES).of(job(curves, work))
    assert found is not None
    return found


def test_columns_are_types_and_widths_at_their_prices() -> None:
    found = outlook(Curves(0.9, widest=3, T4=1.0, A100=2.0), 100.0)
    assert found.gpus == ("T4",) * 3 + ("A100",) * 3
    assert found.widths.tolist() == [1, 2, 3, 1, 2, 3]
    assert found.dollars * 3600 == pytest.approx([1, 2, 3, 4, 8, 12])
    assert found.seconds[0, 0] == pytest.approx(100.0)
    assert found.seconds[0, 3] == pytest.approx(50.0)


def test_a_rest_is_the_part_of_the_epoch_and_all_epochs_after_it() -> None:
    found = outlook(Curves(0.5), 100.0, 200.0, 400.0)
    assert found.rests(1, 0.25)[:, 0] == pytest.approx([50.0 + 400.0, 400.0])
    assert found.rests(7, 1.0)[:, 0] == pytest.approx([400.0]), "beyond the last: the last"


def test_nothing_left_of_an_epoch_that_cannot_run_is_no_number_of_seconds() -> None:
    class Halved(Curves):
        def rates(self, gpu: str, epoch: int):  # type: ignore[no-untyped-def]
            found = super().rates(gpu, epoch)
            if found is not None and epoch == 0:
                found[:, 2] = 0.0
            return found

    found = outlook(Halved(0.9), 100.0, 100.0)
    assert np.isinf(found.rests(0, 0.0)[0, 1])
    assert not np.isnan(found.rests(0, 0.0)).any()


def test_a_job_that_nothing_is_known_of_has_no_outlook() -> None:
    assert Outlooks({"T4": TYPES["T4"]}).of(job(Curves(0.9, A100=1.0))) is None


def test_jobs_of_a_class_share_one_outlook() -> None:
    curves, outlooks = Curves(0.9), Outlooks(TYPES)
    assert outlooks.of(job(curves)) is outlooks.of(job(curves, epoch=0, left=0.5))
    assert outlooks.of(job(curves)) is not outlooks.of(job(curves, (5.0, 6.0)))


class Versioned(Curves):
    version = 1


def test_an_outlook_stays_until_what_is_predicted_changes() -> None:
    curves = Versioned(0.9)
    first = outlook(curves, 100.0)
    assert outlook(curves, 100.0) is first, "in another view, too"
    assert outlook(curves, 200.0) is not first
    curves.version, curves.speeds = 2, {"T4": 2.0}
    assert outlook(curves, 100.0).seconds[0, 0] == pytest.approx(50.0)
    fewer = Outlooks({"A100": TYPES["A100"]}).of(job(curves, (100.0,)))
    assert fewer is None, "of other GPU types"


def test_nothing_is_kept_of_predictions_that_do_not_tell_of_changes() -> None:
    curves = Curves(0.9)
    outlook(curves, 100.0)
    curves.speeds = {"T4": 2.0}
    assert outlook(curves, 100.0).seconds[0, 0] == pytest.approx(50.0)


def test_a_rule_sees_no_further_than_it_looks_ahead() -> None:
    found = outlook(Curves(0.5), *[100.0] * 40)
    assert len(found.rests(0, 1.0)) == LOOK_AHEAD + 1
    assert found.rests(0, 1.0)[0, 0] == pytest.approx(4000.0), "but counts all of it"
    assert len(found.rests(38, 1.0)) == 2


def test_where_nobody_knows_the_epochs_the_present_one_is_looked_at() -> None:
    found = Outlooks(TYPES).of(job(Curves(0.0, 1.0), (), epoch=1))
    assert found is not None
    assert found.seconds[0, 3] == pytest.approx(0.25)


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 50))
def test_a_job_is_looked_at_when_it_would_move_or_after_ten_epochs(
    moves: list[bool], epoch: int
) -> None:
    found = next_look(epoch, np.array(moves, dtype=bool))
    if any(moves[:LOOK_AHEAD]):
        assert found == epoch + 1 + moves.index(True)
    else:
        assert found == (epoch + LOOK_AHEAD if len(moves) >= LOOK_AHEAD else None)


def test_a_job_of_unknown_epochs_is_looked_at_again_after_this_one() -> None:
    view = ClusterView(
        now=0.0, jobs=[job(Curves(0.9), (), epoch=3)], nodes=(), gpu_types={"T4": TYPES["T4"]}
    )
    decided = each_alone(view, lambda one, seen: seen.share(0))
    assert decided.shares["a"].until == 4
