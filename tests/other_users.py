"""A place for tests whose processes are other users': pytest's own folders are closed to them."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def passable_folder() -> Iterator[Path]:
    """A folder that others can go through, gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="boa-test-"))
    try:
        folder.chmod(0o711)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
