"""Another SQLite file in the place of the present one, which is kept aside.

The log of changes goes first: SQLite would take it for the new file's, and carry it over. Whatever
this is interrupted by leaves a store that its data folder knows to be older, or none, and a service
that says so.
"""

import os
import shutil
from pathlib import Path

from boa.atomic_file import draft_of, to_disk
from boa.private_files import private_folder
from boa.store.sqlite import parts_of


def replace_store(path: Path, new: Path, aside: Path) -> None:
    """`new`: a whole database beside `path`, which takes its place. `aside`: a folder, which has
    the present files afterwards, whatever they are."""
    private_folder(aside)
    to_disk(new)
    for part in reversed(parts_of(path)):
        if os.path.lexists(part):
            shutil.move(part, aside / part.name)
    to_disk(path.parent)
    os.replace(new, path)
    to_disk(path.parent)


def copy_beside(source: Path, path: Path) -> Path:
    """A private copy of a file, as a draft of another."""
    draft = draft_of(path)
    draft.unlink(missing_ok=True)
    with open(source, "rb") as old:
        found = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(found, "wb") as new:
            shutil.copyfileobj(old, new, 1024 * 1024)
    return draft
