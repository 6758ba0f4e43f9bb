"""The lease of a service: who may take it, and whose it is."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from boa.clouds.kubernetes import lease
from boa.clouds.kubernetes.lease import (
    LASTS_S,
    SKEW_S,
    Holder,
    Lease,
    LeaseLost,
    hindrance,
    holder_of,
    taken,
)
from boa.errors import InputError
from boa.kubelink import Conflict, Kube, KubeTrouble
from boa.server import engine_and_cloud
from live import config

ME = Holder("host-1", "7", "aaaa")
OTHER = Holder("host_2", "9", "bbbb")
NOW = 1_800_000_000.0


def held_by(holder: Holder, at: float = NOW) -> dict[str, Any]:
    return taken({"metadata": {"resourceVersion": "1"}, "spec": {}}, holder, at)


def test_a_holder_is_found_again_in_its_name() -> None:
    assert holder_of(str(OTHER)) == OTHER
    assert OTHER.told == "host_2 (process 9)"
    assert holder_of("somebody").told == "somebody"


@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": ""}])
def test_a_lease_that_nobody_has_is_free(spec: Any) -> None:
    assert hindrance({"spec": spec}, ME, NOW) is None


def test_another_service_has_to_wait_until_it_was_not_renewed_for_long() -> None:
    found = held_by(OTHER)
    assert hindrance(found, ME, NOW + 3) == (OTHER, 3.0)
    assert hindrance(found, ME, NOW + LASTS_S) is not None
    assert hindrance(found, ME, NOW + LASTS_S + SKEW_S + 1) is None


def test_the_service_of_the_same_folder_takes_it_back_at_once() -> None:
    assert hindrance(held_by(Holder("elsewhere", "3", ME.folder)), ME, NOW) is None


def test_a_lease_that_is_renewed_keeps_its_beginning_and_its_version() -> None:
    first = held_by(ME)
    again = taken(first, ME, NOW + 5)
    assert again["metadata"] == first["metadata"]
    assert again["spec"]["acquireTime"] == first["spec"]["acquireTime"]
    assert again["spec"]["renewTime"] > first["spec"]["renewTime"]
    assert (first["spec"]["leaseTransitions"], again["spec"]["leaseTransitions"]) == (1, 1)
    assert taken(again, OTHER, NOW + 9)["spec"]["leaseTransitions"] == 2


def test_a_data_folder_is_named_once(tmp_path: Path) -> None:
    assert lease.folder_id(tmp_path) == ""
    first, again = lease.this_holder(tmp_path), lease.this_holder(tmp_path)
    assert first == again
    assert len(first.folder) == 16
    (tmp_path / lease.ID_FILE).write_bytes(b"\0damaged")
    assert lease.this_holder(tmp_path).folder not in ("", first.folder)


# Kept


class FakeKube:
    """A cluster with this lease alone. `troubles`: raised by its next changes, one by one."""

    namespace = "lab"

    def __init__(self) -> None:
        self.lease: dict[str, Any] = {"metadata": {"resourceVersion": "0"}, "spec": {}}
        self.troubles: list[Exception] = []
        self.renewed = threading.Semaphore(0)
        self.before_change = lambda: None

    def get(self, path: str) -> dict[str, Any]:
        return self.lease

    def replace(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.troubles:
            raise self.troubles.pop(0)
        version = self.lease["metadata"]["resourceVersion"]
        if body["metadata"]["resourceVersion"] != version:
            raise Conflict("it has changed")
        self.lease = {**body, "metadata": {"resourceVersion": str(int(version) + 1)}}
        self.renewed.release()
        return self.lease

    def close(self) -> None: ...


@contextmanager
def a_lease(kube: FakeKube) -> Iterator[Lease]:
    made = Lease(cast(Kube, kube), "boa", ME)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWED_S", 0.01)
    monkeypatch.setattr(lease, "AGAIN_S", 0.01)


@pytest.mark.usefixtures("quick")
def test_a_lease_is_kept_as_soon_as_a_service_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = FakeKube()
    monkeypatch.setattr(engine_and_cloud, "kubernetes", lambda config: kube)
    found = engine_and_cloud.lease(config(tmp_path), cast(Kube, kube))
    try:
        for _ in range(3):  # taken, and renewed with nobody asking for it
            assert kube.renewed.acquire(timeout=300)
    finally:
        found.close()


@pytest.mark.usefixtures("quick")
def test_nothing_that_goes_wrong_ends_the_keeping() -> None:
    kube = FakeKube()
    with a_lease(kube) as mine:
        mine.take()
        assert kube.renewed.acquire(timeout=300)
        kube.troubles += [RuntimeError("nobody thought of it"), KubeTrouble("away")]
        mine.keep()
        assert kube.renewed.acquire(timeout=300)


@pytest.mark.usefixtures("quick")
def test_a_loss_is_told_once_and_raised_for_whoever_comes_later() -> None:
    kube = FakeKube()
    told: list[LeaseLost] = []
    with a_lease(kube) as mine:
        mine.take()
        mine.tell(told.append)
        kube.lease = held_by(OTHER) | {"metadata": {"resourceVersion": "9"}}
        with pytest.raises(LeaseLost):
            mine.renew()
        assert len(told) == 1
        with pytest.raises(LeaseLost):
            mine.tell(told.append)
        assert len(told) == 1


def test_a_lease_that_a_machine_slept_through_holds_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(lease, "uptime", lambda: now[0])
    with a_lease(FakeKube()) as mine:
        mine.take()
        mine.check()
        now[0] += LASTS_S + 1
        with pytest.raises(KubeTrouble, match="was not renewed"):
            mine.check()


def test_who_is_kept_out_is_told_what_a_second_service_needs() -> None:
    kube = FakeKube()
    kube.lease = held_by(OTHER, time.time())
    with a_lease(kube) as mine, pytest.raises(InputError) as said:
        mine.take()
    assert said.value.field == "kubernetes.owner"
    for word in ("host_2 (process 9)", "an owner or a namespace of its own", "node_label"):
        assert word in str(said.value)


class Looked:
    """An uptime that goes on with every look, at which `then` is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
        self.now, self.then = 100.0, then
        monkeypatch.setattr(lease, "LOOKED_S", 0.0)
        monkeypatch.setattr(lease, "uptime", self)

    def __call__(self) -> float:
        self.now += 1.0
        self.then()
        return self.now


def test_a_lease_that_seems_over_by_our_clock_is_left_to_who_renews_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kube = FakeKube()
    behind = [time.time() - 1000.0]  # that machine's clock
    kube.lease = held_by(OTHER, behind[0])

    def renew() -> None:
        behind[0] += 1.0
        kube.lease = held_by(OTHER, behind[0])

    Looked(monkeypatch, renew)
    with a_lease(kube) as mine, pytest.raises(InputError, match=r"host_2 \(process 9\) is its"):
        mine.take()


def test_a_lease_that_nobody_renews_is_taken_after_it_was_looked_at_for_as_long_as_it_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kube = FakeKube()
    kube.lease = held_by(OTHER, time.time() - 1000.0) | {"metadata": {"resourceVersion": "1"}}
    looked = Looked(monkeypatch, lambda: None)
    with a_lease(kube) as mine:
        mine.take()
        assert looked.now >= 100.0 + LASTS_S
        assert kube.lease["spec"]["holderIdentity"] == str(ME)
