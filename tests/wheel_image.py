"""The service's image for the test cluster: its wheel, installed beside what it needs.

No builder is to be had where tests run, so that its layers are written here: Debian's Python, then
the distributions that the wheel names, as this environment has them, then the wheel itself.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from boa._version import __version__
from kube import apt, image, places

NAME, VERSION = "boa.test/boa-constrictor", __version__
ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("libgcc-s1", "libstdc++6")
"""Debian's, which wheels of others need."""
USER = "10001:10001"
"""As in deploy/Dockerfile."""
MODULES = "usr/local/lib/python3.11/dist-packages"
"""Where Debian's Python looks."""
COMMAND = """\
#!/usr/bin/python3
import sys
from boa.cli import main
if __name__ == "__main__":  # planners are spawned, and import it
    sys.exit(main())
"""


def archive(folder: Path) -> Path:
    """For `ctr images import`. Takes seconds, and a few more for the first time."""
    if sys.version_info[:2] != (3, 11):
        raise RuntimeError("the image has Debian's Python 3.11, and this is another one")
    cache = places.binaries()
    layers = [image.base_layer(cache), _dependencies(cache), _wheel(folder)]
    config = {"Entrypoint": ["boa"], "User": USER}
    made = image.Image(f"{NAME}:{VERSION}", layers, config)
    return image.write_archive(folder / "service.tar", [made])


def needed(name: str = "boa-constrictor") -> list[Distribution]:
    """What it needs to be installed, and what those need, by name; not itself, and no extras."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        for other in _required(distribution(waiting.pop())):
            if other not in found:
                found[other] = distribution(other)
                waiting.append(other)
    return [found[one] for one in sorted(found)]


def _required(of: Distribution) -> Iterator[str]:
    from packaging.requirements import Requirement

    for line in of.requires or ():
        one = Requirement(line)
        if one.marker is None or one.marker.evaluate({"extra": ""}):
            yield re.sub(r"[-_.]+", "-", one.name).lower()


def _dependencies(cache: Path) -> Path:
    """Kept for as long as the versions are the same."""
    listed = needed()
    said = "\n".join([*LIBRARIES, *(f"{one.metadata['Name']}=={one.version}" for one in listed)])
    layer = cache / f"wheel-needs-{hashlib.sha256(said.encode()).hexdigest()[:16]}.tar"
    if not layer.exists():
        with tempfile.TemporaryDirectory(dir=cache) as work:
            for package in apt.fetch(Path(work) / "debs", *LIBRARIES):
                extract = ["dpkg-deb", "--extract", str(package), f"{work}/root"]
                subprocess.run(extract, check=True)
            part = Path(work) / "layer.tar"
            with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as tar:
                for file in sorted(Path(work, "root").rglob("lib*.so*")):
                    tar.add(file, f"usr/lib/{file.parent.name}/{file.name}", filter=_of_root)
                for one in listed:
                    _add(tar, one)
            part.replace(layer)
    return layer


def _add(tar: tarfile.TarFile, one: Distribution) -> None:
    for file in one.files or ():
        at = Path(str(one.locate_file(file)))
        if not {"..", "tests"} & {*file.parts} and at.is_file():  # elsewhere are its commands
            tar.add(at, f"{MODULES}/{file}", filter=_of_root)


def _wheel(folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built, installed = folder / "dist", folder / "installed"
    wheel = ["wheel", "--no-deps", "--wheel-dir", str(built), str(ROOT)]
    subprocess.run([*pip, *wheel], check=True, capture_output=True)
    (file,) = built.glob("*.whl")
    install = ["install", "--no-deps", "--target", str(installed / MODULES), str(file)]
    subprocess.run([*pip, *install], check=True, capture_output=True)
    shutil.rmtree(installed / MODULES / "bin")  # for another Python than the image's
    command = installed / "usr/local/bin/boa"
    command.parent.mkdir(parents=True)
    command.write_text(COMMAND)
    command.chmod(0o755)
    layer = folder / "wheel.tar"
    with tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(installed, ".", filter=_of_root)
    return layer


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """With its time: what is compiled goes by it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
