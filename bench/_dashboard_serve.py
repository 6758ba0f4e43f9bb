"""A service for `dashboard.py` in a process of its own: real but for its clock, cloud and jobs.

Prints its address once the jobs are there, and ends when its standard input is closed. Meanwhile
time passes, 60 times as fast as the wall's: jobs go on, come and end.

.venv/bin/python bench/_dashboard_serve.py ACTIVE STORED
"""

import sys
import tempfile
import threading
from pathlib import Path

from _scale_world import World
from boa.server.app import create_app
from boa.server.http.run import listen, server_for, url_of

SPEED = 60.0
TURN_S = 0.5
"""Of the wall."""
LONG_TURN_S = 3600.0


def main() -> None:
    active, stored = map(int, sys.argv[1:])
    over = threading.Event()
    threading.Thread(target=_wait, args=[over], daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="boa-dashboard-") as folder:
        world = World(active, Path(folder), report_s=600.0)
        world.fill()
        while world.submitted < stored:
            world.turn(LONG_TURN_S)
        _serve(world, over)
        world.close()


def _wait(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


def _serve(world: World, over: threading.Event) -> None:
    app = create_app(
        world.loop,
        world.store,
        world.engine,
        token=None,
        secret=b"secret",
        version="bench",
        speed=SPEED,
    )
    listening, ready = listen("127.0.0.1", 0), threading.Event()
    server = server_for(app, ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    ready.wait()
    print(url_of(listening), flush=True)
    while not over.wait(TURN_S):
        world.turn(TURN_S * SPEED)
    server.end()
    thread.join()


if __name__ == "__main__":
    main()
