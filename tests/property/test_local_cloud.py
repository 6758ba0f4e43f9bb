"""Whatever is rented, given back, lost in a crash: no token is charged twice, no node forgotten."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from boa.clock import VirtualClock
from boa.clouds.base import Cloud, CloudTrouble, NoCapacity
from boa.clouds.faulty import Faults, FaultyCloud
from boa.clouds.local import LocalCloud
from boa.model.cloud import CloudNode
from boa.model.workload import GpuType

TYPES = {
    "T4": GpuType(name="T4", price=1.0, gpus_per_node=4),
    "A100": GpuType(name="A100", price=3.0, gpus_per_node=8),
}
LIMITS = {"T4": 2}
PROVISION_S, RELEASE_S, HOUR = 60.0, 30.0, 3600.0
tokens = st.sampled_from([f"t{number}" for number in range(8)])
gpus = st.sampled_from(["T4", "A100"])


@dataclass
class Bill:
    """What is known of a token from outside."""

    gpu: str
    billed_from: float
    released_at: float | None = None

    @property
    def gone_at(self) -> float:
        return float("inf") if self.released_at is None else self.released_at + RELEASE_S


class LocalCloudMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = VirtualClock(1000.0)
        self.bills: dict[str, Bill] = {}
        self.crash()

    @rule()
    def crash(self) -> None:
        path = Path(self.folder.name) / "cloud.json"
        self.cloud = LocalCloud(path, TYPES, LIMITS, self.clock, PROVISION_S, RELEASE_S)

    @rule(token=tokens, gpu=gpus)
    def rent(self, token: str, gpu: str) -> None:
        now = self.clock.now()
        taken = sum(bill.gpu == gpu and now < bill.gone_at for bill in self.bills.values())
        full = token not in self.bills and taken >= LIMITS.get(gpu, 100)
        try:
            self.cloud.rent(token, gpu)
        except NoCapacity:
            assert full
        else:
            assert not full
            self.bills.setdefault(token, Bill(gpu, now))

    @rule(token=tokens)
    def release(self, token: str) -> None:
        self.cloud.release(token)
        bill = self.bills.get(token)
        if bill is not None and bill.released_at is None:
            bill.released_at = self.clock.now()

    @rule(token=tokens, gpu=gpus, moment=st.sampled_from(["fsync", "replace"]))
    def crash_while_renting(self, token: str, gpu: str, moment: str) -> None:
        with _power_cut(moment):
            self._renting_fails(token, gpu)
        self.crash()

    @rule(token=tokens, gpu=gpus)
    def a_full_disk(self, token: str, gpu: str) -> None:
        with _power_cut("fsync"):
            self._renting_fails(token, gpu)

    def _renting_fails(self, token: str, gpu: str) -> None:
        try:
            self.cloud.rent(token, gpu)
        except (CloudTrouble, NoCapacity):
            return
        assert token in self.bills, "it was rented on a disk that takes nothing"

    @rule(seconds=st.sampled_from([1.0, 30.0, 60.0, HOUR]))
    def wait(self, seconds: float) -> None:
        self.clock.advance_to(self.clock.now() + seconds)

    @invariant()
    def the_list_is_what_was_rented_each_once(self) -> None:
        now = self.clock.now()
        listed = self.cloud.nodes()
        expected = {token: bill for token, bill in self.bills.items() if now < bill.gone_at + HOUR}
        assert sorted(node.token for node in listed) == sorted(expected)
        for node in listed:
            self._check(node, expected[node.token], now)

    def _check(self, node: CloudNode, bill: Bill, now: float) -> None:
        assert (node.gpu, node.billed_from) == (bill.gpu, bill.billed_from)
        assert node.gone_at == (bill.gone_at if now >= bill.gone_at else None)
        last = now if bill.released_at is None else bill.released_at
        booted = bill.billed_from + PROVISION_S
        assert node.ready_at == (booted if booted <= last else None)

    def teardown(self) -> None:
        self.folder.cleanup()


@contextmanager
def _power_cut(moment: str) -> Iterator[None]:
    """Nothing gets further than this when the file is written."""
    with patch.object(os, moment, side_effect=OSError(5, "Input/output error")):
        yield


def test_no_history_charges_a_token_twice_or_loses_a_node() -> None:
    run_state_machine_as_test(
        LocalCloudMachine, settings=settings(max_examples=60, stateful_step_count=30)
    )


class DrillMachine(RuleBasedStateMachine):
    """A client that repeats what failed, on a cloud that fails often."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = VirtualClock(1000.0)
        self.wanted: set[str] = set()
        self.ever: set[str] = set()
        self.restart()

    @rule()
    def restart(self) -> None:
        path = Path(self.folder.name) / "cloud.json"
        self.real = LocalCloud(path, TYPES, {}, self.clock)
        faults = Faults(seed=3, no_capacity=0.2, trouble_before=0.2, trouble_after=0.2)
        self.cloud: Cloud = FaultyCloud(self.real, self.clock, faults)

    @rule(token=tokens)
    def want(self, token: str) -> None:
        if token not in self.ever:
            self.wanted.add(token)
            self.ever.add(token)

    @rule(token=tokens)
    def want_no_more(self, token: str) -> None:
        self.wanted.discard(token)

    @rule()
    def reconcile(self) -> None:
        for _ in range(40):  # as a service does at every step: everything, again
            for token in sorted(self.ever):
                try:
                    if token in self.wanted:
                        self.cloud.rent(token, "A100")
                    else:
                        self.cloud.release(token)
                except (CloudTrouble, NoCapacity):
                    continue
        charged = [node.token for node in self.real.nodes() if node.gone_at is None]
        assert sorted(charged) == sorted(self.wanted)

    def teardown(self) -> None:
        self.folder.cleanup()


def test_who_repeats_what_failed_ends_with_exactly_the_nodes_wanted() -> None:
    run_state_machine_as_test(
        DrillMachine, settings=settings(max_examples=20, stateful_step_count=15)
    )
