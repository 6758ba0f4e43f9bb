"""What runs in production: the versions that were tested, their bill, and what is known of them.

make audit    (within make test too, where only the lock file must be right: a weakness that became
known today, or no network to ask over, is told and fails nothing)

`requirements.lock` names all that BOA needs, its extras included; torch is the user's own choice.
`--lock` writes it anew from this environment, after an upgrade and a green `make test`.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCK, BILL = ROOT / "requirements.lock", ROOT / "dist" / "sbom.json"
US = "boa-constrictor"
EXTRAS = ("aws", "parquet", "postgres", "ray")
HEAD = """\
# The versions that BOA is tested with: pip install boa-constrictor -c requirements.lock
# Written by tests/supply_chain.py --lock.
"""


def declared() -> list[Requirement]:
    """What pyproject.toml asks for, in production."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *(text for name in EXTRAS for text in extras[name])]
    return [Requirement(text) for text in texts]


def installed() -> dict[str, str]:
    """Version by name of all that these need, and what those need, as it is here."""
    found: dict[str, str] = {}
    open_ones = declared()
    seen = set()
    while open_ones:
        wanted = open_ones.pop()
        key = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            there = distribution(wanted.name)
        except PackageNotFoundError:
            sys.exit(f"{wanted.name} is not installed: run this in the environment of make test")
        found[key[0]] = there.version
        open_ones += needs(there.requires or (), wanted.extras)
    return dict(sorted(found.items()))


def needs(texts: Iterator[str] | list[str] | tuple[()], extras: set[str]) -> Iterator[Requirement]:
    for text in texts:
        needed = Requirement(text)
        marker = needed.marker
        if marker is None or any(marker.evaluate({"extra": name}) for name in (*extras, "")):
            yield needed


def locked() -> dict[str, str]:
    pins = re.findall(r"^([a-z0-9-]+)==(\S+)$", LOCK.read_text("utf-8"), re.MULTILINE)
    return dict(pins)


def faults(lock: Mapping[str, str]) -> list[str]:
    """Why the lock file is not what pyproject.toml asks for."""
    found = []
    for wanted in declared():
        pin = lock.get(canonicalize_name(wanted.name))
        if pin is None:
            found.append(f"requirements.lock: {wanted.name} is missing; expected {wanted}")
        elif Version(pin) not in wanted.specifier:
            found.append(f"requirements.lock: {wanted.name}=={pin}; expected {wanted}")
        if not any(part.operator in ("<", "==", "~=") for part in wanted.specifier):
            found.append(f"pyproject.toml: {wanted} has no upper bound")
    return found


def write_bill(lock: Mapping[str, str]) -> None:
    """CycloneDX, which scanners read."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    bill = Bom()
    for name, version in lock.items():
        package = PackageURL("pypi", None, name, version)
        bill.components.add(
            Component(
                type=ComponentType.LIBRARY,
                name=name,
                version=version,
                purl=package,
                bom_ref=str(package),
            )
        )
    BILL.parent.mkdir(exist_ok=True)
    BILL.write_text(JsonV1Dot6(bill).output_as_string(indent=1), "utf-8")


def known_weaknesses() -> tuple[list[str], list[str]]:
    """What the Python Packaging Advisory Database knows of them; and what nobody could be asked
    about."""
    command = (sys.executable, "-m", "pip_audit", "--requirement", str(LOCK), "--no-deps")
    options = ("--disable-pip", "--progress-spinner", "off", "--format", "json")
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    try:
        answers = json.loads(done.stdout)["dependencies"]
    except ValueError:
        said = done.stderr.strip().splitlines() or ["nothing was said"]
        print(said[-1][:200])
        return [], list(locked())
    weak = [
        f"{found['name']} {found['version']}: {problem['id']}"
        + (f", mended in {', '.join(problem['fix_versions'])}" if problem["fix_versions"] else "")
        for found in answers
        for problem in found.get("vulns", ())
    ]
    return weak, [found["name"] for found in answers if "skip_reason" in found]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lock", action="store_true", help="write requirements.lock anew")
    parser.add_argument("--strict", action="store_true", help="fail by known weaknesses too")
    asked = parser.parse_args()
    if asked.lock:
        pins = (f"{name}=={version}\n" for name, version in installed().items())
        LOCK.write_text(HEAD + "".join(pins), "utf-8")
    lock = locked()
    if wrong := faults(lock):
        sys.exit("\n".join(wrong))
    write_bill(lock)
    weak, unknown = known_weaknesses()
    print(f"{len(lock)} packages locked; their bill is {BILL.relative_to(ROOT)}")
    if weak:
        print("\n".join(weak))
    elif len(unknown) < len(lock):
        print(f"no known weakness in {len(lock) - len(unknown)} of them")
    if unknown:
        which = "any of them" if len(unknown) == len(lock) else ", ".join(unknown)
        print(f"nobody could be asked about {which}")
    if asked.strict and (weak or unknown):
        sys.exit(1)


if __name__ == "__main__":
    main()
