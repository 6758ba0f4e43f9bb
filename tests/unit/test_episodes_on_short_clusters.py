"""Episodes of `bench/campaign.py --virtual` that once found something find nothing now."""

import pytest

from _campaign.virtual import run

FOUND = {
    298: "an event named a job that got no GPUs",
    33: "a retry that was booked lost its booking, and was booked again, for ever",
    239: "a retry of a job that had failed nine times narrowed its neighbour",
    389: "a retry took a GPU that its neighbour gave up for another job",
    403: "a rescaling that lost work did not say so",
    421: "a free GPU went to a job of a lower priority, which was next in line",
    438: "a job that was booked and lost its booking began to wait anew",
}


@pytest.mark.parametrize("number", FOUND)
def test_an_episode_finds_nothing_any_more(number: int) -> None:
    assert run(4712, number).violations == []
