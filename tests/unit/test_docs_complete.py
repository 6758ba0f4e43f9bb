"""Whatever can be asked for is described: commands, policies, engines, clouds, files, rooms."""

import re
from pathlib import Path

import pytest

from boa.formats.kinds import KINDS
from boa.model.provider_settings import CLOUDS_OF
from boa.policy.registry import POLICIES
from reference_pages import commands

ROOT = Path(__file__).resolve().parents[2]
ROOMS = sorted(path.parent for path in (ROOT / "src" / "boa").glob("*/__init__.py"))
every_room = pytest.mark.parametrize("room", ROOMS, ids=[room.name for room in ROOMS])


def words(path: str) -> set[str]:
    return set(re.findall(r"[\w-]+", (ROOT / path).read_text("utf-8")))


def test_every_command_is_described() -> None:
    described = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert [path for path, *_ in commands() if path not in described] == []


def test_every_command_teaches_with_examples() -> None:
    silent = [path for path, said, _ in commands() if f"$[/dim] {path}" not in said.help]
    assert silent == []


def test_every_bench_is_listed() -> None:
    listed = (ROOT / "docs" / "evaluation.md").read_text("utf-8")
    benches = [path.name for path in (ROOT / "bench").glob("[!_]*.py")]
    assert [name for name in benches if f"`{name}`" not in listed] == []


def test_every_policy_is_described() -> None:
    text = (ROOT / "docs" / "concepts" / "policies.md").read_text("utf-8").lower()
    assert [name for name in POLICIES if name not in text] == []


def test_every_engine_and_cloud_is_described() -> None:
    names = {*CLOUDS_OF, *(name for names in CLOUDS_OF.values() for name in names)}
    assert names - words("docs/config.md") == set()


def test_every_kind_of_schema_is_described() -> None:
    assert set(KINDS) - words("docs/cli.md") == set()


@every_room
def test_every_room_has_a_readme_that_names_what_is_in_it(room: Path) -> None:
    there = words(f"src/boa/{room.name}/README.md")
    files = {path.stem for path in room.glob("*.py") if path.stem != "__init__"}
    rooms = {path.parent.name for path in room.glob("*/__init__.py")}
    assert (files | rooms) - there == set()


def test_the_house_names_every_room() -> None:
    assert {room.name for room in ROOMS} - words("docs/architecture.md") == set()
