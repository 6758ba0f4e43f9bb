"""The beginning of a keeper (`boa.train.keeper`): as who, and as whose child. Runs without the rest
of the package."""

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from boa.engines.processes.worker_user import become
else:
    from worker_user import become


def main(code: str, how: str, *words: str) -> None:
    """`code`: the folder of the keeper's own; `how`: JSON of who it is to be (`user`, as in
    `worker_user`) and whether it is to be nobody's child (`alone`); then its own words."""
    asked = json.loads(how)
    if asked["alone"] and os.fork():
        os._exit(0)  # Ray kills the children of an actor that ends: this is no child of its
    sys.path.append(code)
    import process  # type: ignore[import-not-found]

    options = process.options_of(words)  # now: what it imports may be out of the user's reach
    os.chdir("/")
    if asked["user"] is not None:
        become(asked["user"])
    process.serve(options)
