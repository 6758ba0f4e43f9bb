"""Where the examples are that ship with boa."""

from importlib import resources
from pathlib import Path

from boa.errors import FileError


def example_path(name: str) -> Path:
    """A shipped example: inside the installed package, or beside it in a source tree."""
    import boa

    packaged = Path(str(resources.files("boa"))) / "examples" / name
    beside = Path(boa.__file__).resolve().parents[2] / "examples" / name
    for path in (packaged, beside):
        if path.is_file():
            return path
    raise FileError(str(packaged), "no such file", "the examples that ship with boa")
