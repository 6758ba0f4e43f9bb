"""The crowd of connections and the limits on it, without a socket."""

import subprocess
import sys

import pytest

from boa.server.http.crowd import MOST_LINGERING, Crowd
from boa.server.http.errors import Crowded, TooManyConnections
from boa.server.http.limits import KEPT_DESCRIPTORS, Limits


class Somebody:
    """A connection that does as it is told."""

    def __init__(self, crowd: Crowd, address: str = "10.0.0.1") -> None:
        self.crowd, self.address = crowd, address
        self.fate = ""

    def patience_s(self) -> float:
        return 10.0

    def expire(self) -> None:
        self.fate = "expired"
        self.crowd.leave(self)

    def cut(self) -> None:
        self.fate = "cut"


def test_one_address_never_takes_the_room_of_others() -> None:
    crowd = Crowd(Limits(connections=4, per_address=2))
    many = [Somebody(crowd) for _ in range(10)]
    others = [Somebody(crowd, "10.0.0.2") for _ in range(2)]
    for guest in [*others, *many]:
        assert crowd.enter(guest) is None
        crowd.wait_for(guest)
    assert [guest.fate for guest in others] == ["", ""]
    assert [guest.fate for guest in many] == ["cut"] * 8 + ["", ""]
    assert len(crowd) == 4


def test_nobody_is_waited_for_longer_than_agreed() -> None:
    now = [0.0]
    crowd = Crowd(Limits(head_s=5.0), clock=lambda: now[0])
    early, served, late = guests = [Somebody(crowd) for _ in range(3)]
    for guest in guests:
        assert crowd.enter(guest) is None
    crowd.wait_for(early)
    crowd.wait_for(served)
    now[0] = 6.0
    crowd.wait_for(late)
    crowd.serve(served)
    now[0] = 10.0
    crowd.look()
    assert [guest.fate for guest in guests] == ["expired", "", ""]
    assert len(crowd) == 2


def test_refused_ones_linger_for_a_moment_and_only_so_many() -> None:
    now = [0.0]
    crowd = Crowd(Limits(connections=1, per_address=1), clock=lambda: now[0])
    assert crowd.enter(Somebody(crowd)) is None
    assert isinstance(crowd.enter(Somebody(crowd)), TooManyConnections)
    refused = [Somebody(crowd, "10.0.0.2") for _ in range(MOST_LINGERING + 1)]
    assert all(isinstance(crowd.enter(guest), Crowded) for guest in refused)
    assert [crowd.linger(guest) for guest in refused] == [True] * MOST_LINGERING + [False]
    now[0] = 60.0
    crowd.look()
    assert {guest.fate for guest in refused[:-1]} == {"cut"}


@pytest.mark.parametrize("descriptors", [16, 300, 1024, 4096, 16_384])
def test_clients_never_get_all_descriptors(descriptors: int) -> None:
    limits = Limits().within(descriptors)
    least = min(KEPT_DESCRIPTORS, descriptors // 2)
    assert 0 < limits.connections + limits.streams <= descriptors - least
    assert 0 < limits.per_address <= limits.connections


def test_with_enough_descriptors_limits_are_as_documented() -> None:
    assert Limits().within(16_384) == Limits()


RAISED = """
import resource
from boa.server.http.limits import raise_descriptors
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 512))
assert raise_descriptors(256) == 256 == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
assert raise_descriptors(200) == 256, "never lowered"
assert raise_descriptors(9999) == 512 == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""


def test_the_descriptor_limit_is_raised_as_far_as_it_may_be() -> None:
    subprocess.run([sys.executable, "-c", RAISED], check=True)
