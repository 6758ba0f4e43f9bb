"""README and tutorial: every command in them is run, or says why it is not."""

import shutil
import sysconfig
from pathlib import Path

import pytest

from shown_commands import ROOT, Block, blocks, parts, shell

PAGES = ("README.md", "docs/tutorial.md")
INSTALL = "Install"
ELSEWHERE = (".git", ".venv*", "node_modules", "*cache*", ".hypothesis", "dist", "site", "build")
TEXTS = {page: (ROOT / page).read_text("utf-8") for page in PAGES}
PARTS = [
    pytest.param(part, id=f"README.md: {title}")
    for title, part in parts(TEXTS["README.md"]).items()
    if title != INSTALL and any(block.commands for block in blocks(part))
] + [pytest.param(TEXTS["docs/tutorial.md"], id="docs/tutorial.md")]


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_every_command_does_what_is_shown(part: str, tmp_path: Path) -> None:
    with shell(tmp_path) as terminal:
        for block in blocks(part):
            terminal.run(block)


@pytest.mark.slow
def test_both_ways_to_install_end_in_a_boa_that_plans(tmp_path: Path) -> None:
    """In a copy of the clone. Dependencies are this environment's: nothing is fetched."""
    clone = tmp_path / "clone"
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(*ELSEWHERE), symlinks=True)
    page = clone / "src/boa/server/static/index.html"
    page.parent.mkdir(exist_ok=True)
    page.touch()  # newer than its sources: the dashboard has tests of its own
    offline = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0: none
    with shell(clone, PYTHONPATH=str(others(tmp_path / "others")), **offline) as terminal:
        (found,) = (part for title, part in parts(TEXTS["README.md"]).items() if title == INSTALL)
        for block in blocks(found):
            terminal.run(block)


def others(folder: Path) -> Path:
    """All packages that are installed here, but for our own."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "boa_constrictor" not in path.name:
            (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_run_says_why(page: str) -> None:
    skipped = [block for block in blocks(TEXTS[page]) if block.word == "not run"]
    assert all(len(block.about.split()) > 3 for block in skipped)
    silent = [block for block in blocks(TEXTS[page]) if not runs(block) and not block.word]
    assert silent == []


def runs(block: Block) -> bool:
    return bool(block.commands) or block.language == "python"


def test_two_commands_of_the_readme_do_all_set_up() -> None:
    first = blocks(TEXTS["README.md"])[0]
    words = [line.partition("#")[0].split() for line in first.text.splitlines()]
    assert words == [["make", "demo"], ["make", "test"]]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert all(f"\n{target}:" in makefile for _, target in words)
