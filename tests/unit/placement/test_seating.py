"""States that the market chose, on GPUs of nodes that are ready."""

import numpy as np

from boa.model.cluster import Allocation, Node
from boa.placement.seating import Options, seated
from live import T4

NODES = [Node(1, "T4", 4), Node(2, "T4", 4)]


def only(width: int) -> Options:
    return Options([("T4", width)], np.ones(1), np.ones(1))


def test_a_job_that_the_market_gave_gpus_has_them_though_no_single_node_does() -> None:
    held = {"a": Allocation("T4", ((1, 2),)), "b": Allocation("T4", ((2, 2),))}
    chosen = {"a": ("T4", 2), "b": ("T4", 2), "whole": ("T4", 4)}
    offers = {job: only(width) for job, (_, width) in chosen.items()}
    found = seated(chosen, held, offers, held, NODES, {"T4": T4})
    assert found == {**held, "whole": Allocation("T4", ((1, 2), (2, 2)))}


def test_a_job_is_on_one_node_where_one_has_room() -> None:
    held = {"a": Allocation("T4", ((1, 2),)), "b": Allocation("T4", ((1, 2),))}
    chosen = {"a": ("T4", 2), "b": ("T4", 2), "whole": ("T4", 4)}
    offers = {job: only(width) for job, (_, width) in chosen.items()}
    found = seated(chosen, held, offers, held, NODES, {"T4": T4})
    assert found["whole"] == Allocation("T4", ((2, 4),))
