"""Prices of nodes in the store: written as they change, and read where none could."""

import json
from dataclasses import replace

from boa.model.records import NodeRecord
from boa.store.codec import node_of, node_row, nodes_of

NODE = NodeRecord(
    id=7,
    token="t-7",
    gpu="T4",
    gpus=4,
    price=1.0,
    changes=((3600.0, 0.5), (7200.0, 2.0)),
    state="gone",
    requested_at=0.0,
    billed_from=0.0,
    gone_at=9000.0,
)


def test_changes_of_a_price_come_back_as_they_were_written() -> None:
    row = node_row(NODE)
    assert node_of(row) == NODE
    assert nodes_of([[(row["id"], row["record"])]]) == [NODE]


def test_a_node_written_before_prices_changed_costs_the_average_that_it_has() -> None:
    row = node_row(NODE)
    record = json.loads(row["record"])
    del record["changes"]
    before = node_of({**row, "record": json.dumps(record)})
    assert before == replace(NODE, changes=())
    assert before.price_at(8000.0) == 1.0
