"""Other Pythons that we support, as far as they are on the PATH: imports and a few tests.

make matrix    (within make test too, where an environment that cannot be set up is only told)

The whole suite runs on one interpreter. This takes seconds per interpreter once its environment
(.venv-3.12, .venv-3.13) is there, and finds syntax, standard library and dependencies that differ.
"""

import argparse
import hashlib
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13")
TOOLS = ("hypothesis>=6.100", "jsonschema>=4.20", "pytest>=8.0")
TESTS = ("formats", "placement", "solver", "test_clock.py", "test_exported_members.py")
EXTRAS = ("accelerate", "boto3", "botocore", "lightning", "psycopg", "pyarrow", "ray", "torch")
"""Packages that only parts of BOA need, and that an environment of the matrix does without."""
SCRIPTS = ("engines/processes",)
"""Folders whose modules run as scripts, and find each other there."""
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
ROOT = Path(__file__).resolve().parents[1]


class NotSetUp(Exception):
    """An environment could not be made; says why."""


def interpreter(version: str) -> str | None:
    """The Python of this version on the PATH, if there is one and it runs."""
    found = shutil.which(f"python{version}")
    if found is None:
        return None
    tried = subprocess.run(
        [found, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
    )
    return found if tried.stdout.strip() == version else None


def environment(version: str, python: str) -> Path:
    """The Python of an environment with BOA and the tools in it, made anew if they have changed."""
    home = ROOT / f".venv-{version}"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + repr(TOOLS).encode())
    stamp, inside = home / ".matrix", home / "bin" / "python"
    if not (stamp.exists() and stamp.read_text() == wanted.hexdigest()):
        print(f"setting up {home.name} (once)", flush=True)
        install = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for command in ([python, "-m", "venv", str(home)], [*install, "-e", str(ROOT), *TOOLS]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                said = (done.stderr or done.stdout).strip().splitlines() or ["nothing was said"]
                raise NotSetUp(said[-1])
        stamp.write_text(wanted.hexdigest())
    return inside


def import_everything() -> int:
    """Import every module of BOA; gives their number. One that needs an extra may miss that."""
    sys.path += [str(ROOT / "src" / "boa" / folder) for folder in SCRIPTS]
    names = [path.relative_to(ROOT / "src").with_suffix("").parts for path in _files()]
    for parts in names:
        try:
            importlib.import_module(".".join(parts).removesuffix(".__init__"))
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in EXTRAS:
                raise
    return len(names)


def _files() -> list[Path]:
    """Modules of BOA, but the one that runs the command."""
    found = sorted((ROOT / "src" / "boa").rglob("*.py"))
    return [path for path in found if path.name != "__main__.py"]


def check(python: Path) -> bool:
    tests = [str(ROOT / "tests" / "unit" / name) for name in TESTS]
    imports = [str(python), "-W", "error::SyntaxWarning", __file__, "--imports"]
    commands = (imports, [str(python), "-m", "pytest", "-p", "no:cacheprovider", *tests])
    return all(subprocess.run(command, cwd=ROOT).returncode == 0 for command in commands)


def run(strict: bool) -> int:
    failed = []
    for version in VERSIONS:
        if version == HERE:
            continue
        python = interpreter(version)
        if python is None:
            print(f"Python {version} is not here: skipped")
            continue
        try:
            inside = environment(version, python)
        except NotSetUp as why:
            print(f"Python {version} has no environment to run in: {why}")
            failed += [version] if strict else []
            continue
        print(f"Python {version}", flush=True)
        failed += [] if check(inside) else [version]
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strict", action="store_true", help="an environment must come about")
    parser.add_argument("--imports", action="store_true", help="only import, in this interpreter")
    asked = parser.parse_args()
    if asked.imports:
        print(f"{import_everything()} modules import")
    else:
        sys.exit(run(asked.strict))
