"""Tokens and nodes of a Ray cluster: whose is which, what is asked for, what is charged."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from boa.clock import VirtualClock
from boa.clouds.ray import bookkeeping
from boa.clouds.ray.bookkeeping import HEAD, LATE_S, Book, Demand, Entry
from boa.clouds.ray.cloud import RayCloud
from boa.errors import FileError
from boa.raylink import RayNode

TYPES = {"T4": 2, "A100": 4}
NOW = 100.0


def ray_node(id: str, gpu: str = "T4", gpus: float | None = None, alive: bool = True) -> RayNode:
    count = TYPES[gpu] if gpus is None else gpus
    resources = {"CPU": 4.0, "GPU": count, gpu: count} if alive else {}
    return RayNode(id=id, alive=alive, address="127.0.0.1", resources=resources, labels={})


def wish(token: str, gpu: str = "T4", at: float = NOW) -> Entry:
    return Entry(token=token, gpu=gpu, gpus=TYPES[gpu], price=1.0, asked_at=at)


def rented(*tokens: str, book: Book | None = None) -> Book:
    book = Book() if book is None else book
    for token in tokens:
        book = bookkeeping.rented(book, wish(token))
    return book


def observed(book: Book, *nodes: RayNode, at: float = NOW) -> Book:
    return bookkeeping.observed(book, nodes, TYPES, at)


def owners(book: Book) -> dict[str, str]:
    return {token: entry.node for token, entry in book.entries.items()}


def test_nothing_is_listed_before_a_node_has_come_and_then_it_is_charged_from_the_wish() -> None:
    book = rented("a")
    assert bookkeeping.listing(book) == []
    assert bookkeeping.demands(book) == [Demand("T4", 2)]
    (listed,) = bookkeeping.listing(observed(book, ray_node("n"), at=160.0))
    assert (listed.token, listed.address) == ("a", "n")
    assert (listed.billed_from, listed.ready_at, listed.gone_at) == (100.0, 160.0, None)


def test_who_waits_longest_gets_the_first_node_whatever_order_ray_lists_them_in() -> None:
    book = bookkeeping.rented(bookkeeping.rented(Book(), wish("b", at=2.0)), wish("a", at=3.0))
    nodes = [ray_node("x"), ray_node("y")]
    for order in (nodes, nodes[::-1]):
        assert owners(observed(book, *order)) == {"b": "x", "a": "y"}


def test_a_node_that_nobody_waited_for_is_never_ours_and_does_not_count_as_the_one_wanted() -> None:
    before = observed(Book(), ray_node("theirs"))
    book = observed(rented("a", book=before), ray_node("theirs"))
    assert bookkeeping.listing(book) == []
    (demand,) = bookkeeping.demands(book)
    assert demand.selector == {"ray.io/node-id": "!in(theirs)"}
    assert owners(observed(book, ray_node("theirs"), ray_node("ours"))) == {"a": "ours"}


def test_the_head_is_never_ours_since_nobody_would_take_it_away() -> None:
    head = ray_node("head")
    head = replace(head, resources={**head.resources, HEAD: 1.0})
    assert owners(observed(rented("a"), head)) == {"a": ""}


def test_those_kept_are_asked_for_by_name_and_one_given_back_is_not() -> None:
    nodes = (ray_node("x"), ray_node("y"))
    book = bookkeeping.released(observed(rented("a", "b"), *nodes), "a", NOW)
    (demand,) = bookkeeping.demands(book)
    assert demand.selector == {"ray.io/node-id": "y"}
    assert demand.bundle == {"GPU": 2, "T4": 2}


def test_a_node_given_back_is_charged_until_ray_says_that_it_is_dead() -> None:
    book = bookkeeping.released(observed(rented("a"), ray_node("x")), "a", 200.0)
    (listed,) = bookkeeping.listing(observed(book, ray_node("x"), at=900.0))
    assert listed.gone_at is None
    (listed,) = bookkeeping.listing(observed(book, ray_node("x", alive=False), at=950.0))
    assert listed.gone_at == 950.0


def test_a_node_that_dies_is_gone_and_no_longer_asked_for() -> None:
    book = observed(observed(rented("a", "b"), ray_node("x"), ray_node("y")), ray_node("y"), at=7e3)
    assert book.entries["a"].gone_at == 7e3
    assert [demand.node for demand in bookkeeping.demands(book)] == ["y"]


def test_a_node_given_back_that_is_still_there_is_taken_over_and_charged_once() -> None:
    book = bookkeeping.released(observed(rented("a"), ray_node("x")), "a", 200.0)
    book = bookkeeping.rented(book, wish("b", at=300.0))
    old, new = bookkeeping.listing(book)
    assert (old.gone_at, new.billed_from, new.ready_at, new.address) == (300.0, 300.0, 300.0, "x")
    assert [demand.node for demand in bookkeeping.demands(book)] == ["x"]


def test_a_node_that_comes_after_its_token_was_given_back_is_charged_all_the_same() -> None:
    book = bookkeeping.released(rented("a"), "a", NOW)
    assert bookkeeping.demands(book) == []
    assert bookkeeping.listing(observed(book)) == []
    (listed,) = bookkeeping.listing(observed(book, ray_node("x"), at=160.0))
    assert (listed.token, listed.gone_at) == ("a", None)
    assert bookkeeping.listing(observed(book, ray_node("x"), at=NOW + LATE_S)) == []


def test_nodes_with_other_gpus_than_configured_are_not_ours_and_no_more_are_asked_for() -> None:
    book = observed(rented("a"), ray_node("x", gpus=8.0))
    assert book.misfits == {"T4": "8 T4 and 8 GPU"}
    assert not bookkeeping.listing(book)
    assert not bookkeeping.demands(book)


def test_fixed_nodes_are_given_at_once_and_free_again_at_once() -> None:
    nodes = [ray_node("x")]
    book = bookkeeping.observed_fixed(rented("a", "b"), nodes, TYPES, NOW)
    assert owners(book) == {"a": "x", "b": ""}
    book = bookkeeping.observed_fixed(bookkeeping.released(book, "a", 150.0), nodes, TYPES, 151.0)
    assert owners(book) == {"a": "x", "b": "x"}
    assert book.entries["a"].gone_at == 150.0


def test_a_file_that_is_damaged_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ray.json"
    path.write_text('{"entries": [{}]}')
    with pytest.raises(FileError, match="damaged"):
        RayCloud(
            path,
            address="127.0.0.1:1",
            namespace="n",
            nodes="fixed",
            gpu_types={},
            max_nodes={},
            clock=VirtualClock(),
        )


class RayCloudMachine(RuleBasedStateMachine):
    """A cluster whose autoscaler does as it is told, late, with others' nodes about and deaths."""

    def __init__(self) -> None:
        super().__init__()
        self.book, self.now = Book(), 0.0
        self.there: dict[str, str] = {}
        """Nodes alive, with their type."""
        self.wanted: set[str] = set()
        self.tokens: list[str] = []
        self.launched = 0

    def look(self) -> None:
        self.now += 1.0
        nodes = [ray_node(id, gpu) for id, gpu in self.there.items()]
        self.book = bookkeeping.observed(self.book, nodes, TYPES, self.now)
        self.wanted -= {t for t in self.wanted if self.book.entries[t].gone_at is not None}

    def bring(self, gpu: str) -> None:
        self.launched += 1
        self.there[f"{(self.launched * 7919) % 1000:03d}-{self.launched}"] = gpu

    @rule(gpu=st.sampled_from(sorted(TYPES)))
    def rent(self, gpu: str) -> None:
        self.look()
        token = f"t{len(self.tokens)}"
        self.tokens.append(token)
        self.wanted.add(token)
        self.book = bookkeeping.rented(self.book, wish(token, gpu, self.now))

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.tokens:
            token = data.draw(st.sampled_from(self.tokens))
            self.wanted.discard(token)
            self.book = bookkeeping.released(self.book, token, self.now)

    @rule(data=st.data())
    def autoscale(self, data: st.DataObject) -> None:
        """Launch some of what is missing, and take away some of what nobody asks for."""
        demands = bookkeeping.demands(self.book)
        missing = [demand for demand in demands if not demand.node]
        for demand in missing[: data.draw(st.integers(0, len(missing)))]:
            if not any(
                gpu == demand.gpu and id not in demand.but and id not in {d.node for d in demands}
                for id, gpu in self.there.items()
            ):
                self.bring(demand.gpu)
        idle = sorted(self.there.keys() - {demand.node for demand in demands})
        for id in idle[: data.draw(st.integers(0, len(idle)))]:
            del self.there[id]

    @rule(gpu=st.sampled_from(sorted(TYPES)))
    def somebody_elses_node(self, gpu: str) -> None:
        self.bring(gpu)

    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        if self.there:
            del self.there[data.draw(st.sampled_from(sorted(self.there)))]

    @rule()
    def watch(self) -> None:
        self.look()

    @invariant()
    def no_token_is_lost(self) -> None:
        assert self.wanted <= self.book.entries.keys()
        assert set(self.tokens) == set(self.book.used)

    @invariant()
    def no_node_is_under_two_tokens(self) -> None:
        held = [e.node for e in self.book.entries.values() if e.node and e.gone_at is None]
        assert len(held) == len(set(held))
        assert not set(held) & self.book.strangers.keys()

    @invariant()
    def what_is_asked_for_is_what_is_wanted(self) -> None:
        demands = bookkeeping.demands(self.book)
        assert len(demands) == len(self.wanted)
        named = [demand.node for demand in demands if demand.node]
        assert len(named) == len(set(named))
        for demand in demands:
            entries = self.book.entries.values()
            held = {e.node for e in entries if e.gpu == demand.gpu and e.gone_at is None} - {""}
            assert demand.node in held if demand.node else held <= set(demand.but)

    @invariant()
    def what_is_there_stays_charged(self) -> None:
        """Given back or not: until it is dead, or another token has it."""
        for entry in self.book.entries.values():
            if entry.node in self.there and entry.gone_at is not None:
                heirs = [e for e in self.book.entries.values() if e.node == entry.node]
                assert any(e.asked_at == entry.gone_at or e.gone_at is None for e in heirs)
        for node in bookkeeping.listing(self.book):
            assert node.gone_at is None or node.gone_at >= node.billed_from


def test_whatever_happens_tokens_and_nodes_stay_one_to_one_and_are_charged_once() -> None:
    run_state_machine_as_test(
        RayCloudMachine, settings=settings(max_examples=60, stateful_step_count=30, deadline=None)
    )
