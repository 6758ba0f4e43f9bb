"""A service that has a plan, for benches that submit jobs to it."""

import time

from boa.client import Client, Refused

PATIENCE_S, LOOK_S = 600.0, 0.05


def until_planned(client: Client) -> None:
    """Return once the first plan is there: what comes before it is started otherwise."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            client.plan()
            return
        except Refused as none_yet:
            if none_yet.status != 404 or time.monotonic() > deadline:
                raise
        time.sleep(LOOK_S)
