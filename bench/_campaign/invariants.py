"""What must be true after every episode, whatever befell the world; from the observer's books."""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from _campaign.observer import dearest_moment
from _campaign.processes import NeverCame, lives, until
from _campaign.world import World
from boa.client import Client
from boa.errors import BoaError
from boa.model.records import Hold, NodeRecord
from boa.scheduler.money.ledger import Totals, bill
from boa.store.sql import open_store

EXACT = 1e-9
MOST_LOG_BYTES = 128 * 1024
ENDED = ("succeeded", "failed", "stopped")


def settle(world: World, within_s: float) -> None:
    """Wait until all jobs have ended and all nodes are given back."""
    with world.service.client(30.0) as client:

        def over() -> bool:
            world.tick()
            if not world.service.pid:  # it gave way, and said so: whoever looks after it ...
                world.up()
            try:
                return not client.jobs() and not client.nodes() and world.is_empty()
            except BoaError:
                return False

        try:
            until(over, "after the faults", within_s, every_s=0.2)
        except NeverCame:
            _say_what_is_left(world, client)


def _say_what_is_left(world: World, client: Client) -> None:
    try:
        for job in client.jobs():
            why = f"{job['state']}, {job['reason']!r}"
            world.violated(f"job {job['name']} (id {job['id']}) does not end: {why}")
        for node in client.nodes():
            world.violated(f"node {node['id']} is not given back: {node['state']}")
    except BoaError as trouble:
        world.violated(f"the service does not answer after the faults: {trouble}")


def check(world: World) -> None:
    """While the service is up, and all is over."""
    with world.service.client(30.0) as client:
        try:
            rows = client.jobs(all=True)
            jobs = {row["id"]: dict(client.job(row["id"])) for row in rows}
            cost, budget = client.cost(), client.budget()
        except BoaError as trouble:
            world.violated(f"the service does not answer: {trouble}")
            return
    _nothing_lost(world, jobs, budget["budget_per_hour"])
    _nothing_twice(world)
    _no_work_invented(world, jobs)
    _books_agree(world, cost["total_usd"])
    _quiet(world)


def _nothing_lost(world: World, jobs: Mapping[str, Mapping[str, Any]], budget: float) -> None:
    said, names = world.said, Counter(job["name"] for job in jobs.values())
    for name, id in said.jobs.items():
        if id not in jobs or jobs[id]["name"] != name:
            world.violated(f"acknowledged job {name} (id {id}) is lost")
    for name, times in names.items():
        if times > 1:
            world.violated(f"job {name} was submitted once and is there {times} times")
        if name not in said.jobs and name not in said.maybe:
            world.violated(f"job {name} was never submitted")
    for job in jobs.values():
        _ended_well(world, job)
    if not any(math.isclose(budget, one) for one in said.budgets):
        world.violated(f"the budget is {budget}; acknowledged was {said.budgets}")
    for text in said.bugs:
        world.violated(f"answered with a bug: {text}")


def _ended_well(world: World, job: Mapping[str, Any]) -> None:
    name, state = job["name"], job["state"]
    asked = name in world.said.stops | world.said.maybe_stops
    units, done = int(job["spec"]["run"][-3]), world.journal.done()[name]
    if state not in ENDED:
        return  # said already
    if state == "failed" or (state == "stopped" and not asked):
        world.violated(f"job {name} (id {job['id']}) {state}: {job['reason']}")
    if state == "succeeded" and not set(range(1, units + 1)) <= done:
        world.violated(f"job {name} (id {job['id']}) succeeded with {len(done)} of {units} units")


def _nothing_twice(world: World) -> None:
    for line in world.journal.lines():
        if line.what == "double":
            other = os.path.basename(line.more["other"])
            text = f"job {line.name} attempt {line.attempt} rank {line.rank} began while {other}"
            world.violated(f"{text} was there")
        if line.what == "stranger":
            world.violated(f"job {line.name} found the checkpoint of {line.more['other']}")
    for pid in {*world.journal.pids("start"), *world.journal.pids("child")}:
        if lives(pid) and pid in world.everybody():
            world.violated(f"process {pid} of a job is left over")


def _no_work_invented(world: World, jobs: Mapping[str, Mapping[str, Any]]) -> None:
    done = world.journal.done()
    for job in jobs.values():
        really = max(done[job["name"]], default=0)
        if job["progress"] > really + EXACT:
            text = f"job {job['name']}: the service believes {job['progress']} units"
            world.violated(f"{text}, {really} were done")


def _books_agree(world: World, total: float) -> None:
    rented = world.rented()
    for node in rented.values():
        if node.until is None:
            world.violated(f"node {node.token} is rented, and nobody owns it")
    owed = math.fsum(node.cost() for node in rented.values())
    if abs(owed - total) > EXACT * max(1.0, owed) + world.slack():
        world.violated(f"the ledger has ${total!r}, the cloud's book ${owed!r}")
    if (most := dearest_moment(rented)) > world.cap + EXACT:
        world.violated(f"${most:g}/h were spent at one moment; the cap is ${world.cap:g}/h")


def _quiet(world: World) -> None:
    text = world.service.log.read_text("utf-8", "replace")
    if "Traceback" in text:
        where = text.index("Traceback")
        world.violated(f"a traceback in the log: {text[where : where + 3000]}")
    if len(text) > MOST_LOG_BYTES:
        world.violated(f"the log has {len(text)} bytes, the last of them: {text[-500:]}")


def check_store(world: World) -> None:
    """After the service has ended: the sums in the store are those of its nodes and holds."""
    store = open_store(world.store_url())
    try:
        saved = store.load()
        nodes = store.nodes_between(0.0, float("inf"))
        holds = store.holds_between(0.0, float("inf"))
        points = [point for id in world.said.jobs.values() for point in store.points(id)]
    finally:
        store.close()
    if saved.holds:
        world.violated(f"{len(saved.holds)} holds were never closed")
    whole, document = bill(nodes, holds, 0.0, float("inf")), saved.meta.get("totals")
    totals = Totals() if document is None else Totals.from_document(document)
    late = world.slack()  # nodes that are lost are known to be so only later
    for what, one, other, slack in (
        ("spend", totals.total, whole.total, 0.0),
        ("jobs' spend", totals.jobs, whole.jobs, late),
    ):
        if abs(one - other) > EXACT * max(1.0, other) + slack:
            world.violated(f"the store's total {what} is ${one!r}, that of its nodes ${other!r}")
    by_attempt = world.journal.by_attempt()
    for point in points:
        if point.units > (units := by_attempt[point.job, point.attempt]) + EXACT:
            text = f"job {point.job} attempt {point.attempt}: {point.units} units are believed"
            world.violated(f"{text}, {units} were done")
    learned, really = sum(cell.units for cell in saved.cells), sum(by_attempt.values())
    if learned > really + EXACT:
        world.violated(f"rates were learned from {learned} units; {really} were done")
    _nothing_charged_twice(world, nodes, holds)


def _nothing_charged_twice(
    world: World, nodes: Sequence[NodeRecord], holds: Sequence[Hold]
) -> None:
    for node in nodes:
        changes = sorted(
            (moment, delta)
            for hold in holds
            if hold.node == node.id and hold.until is not None
            for moment, delta in ((hold.since, hold.gpus), (hold.until, -hold.gpus))
        )
        held = 0
        for _, delta in changes:
            held += delta
            if held > node.gpus:
                world.violated(f"GPUs of node {node.id} are charged to two jobs at once")
                break
