"""The changelog and the version belong together."""

import re
from pathlib import Path

import boa

CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"
HEADING = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def test_what_is_not_released_stands_first_and_the_newest_version_is_ours() -> None:
    headings = HEADING.findall(CHANGELOG.read_text("utf-8"))
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == boa.__version__


def test_versions_are_dated_and_go_down() -> None:
    _, *released = HEADING.findall(CHANGELOG.read_text("utf-8"))
    numbers = [tuple(map(int, version.split("."))) for version, _ in released]
    dates = [date for _, date in released]
    assert numbers == sorted(set(numbers), reverse=True)
    assert all(dates)
    assert dates == sorted(dates, reverse=True)
