"""Documentation site: copies of the pages in one tree, from which Zensical builds site/.

make docs

The pages are read in the repository, too, where links lead to code, examples and folders. So the
tree is laid out as the repository is, and has whatever a page links to; a folder gets a page that
lists its files.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from doc_links import ELSEWHERE, LINK, PAGES, ROOT, prose

CONFIG = ROOT / "mkdocs.yml"
TREE, SITE = "build/pages", "site"
"""Where the configuration has them, from the folder that it is in."""
FETCHED = "https://unpkg.com/iframe-worker/shim"
"""The one thing that the site would fetch from elsewhere, and has beside it instead …"""
OWN = "docs/assets/iframe-worker.js"
"""… here."""


def targets(page: Path) -> Iterator[tuple[str, Path]]:
    """Relative links of a page, as they stand there and as paths."""
    for target in LINK.findall(prose(page)):
        path = target.partition("#")[0]
        if path and not target.startswith(ELSEWHERE):
            yield target, Path(os.path.normpath(page.parent / path))


def lay_out(tree: Path) -> None:
    """Write the tree anew: pages, and all that they link to."""
    shutil.rmtree(tree, ignore_errors=True)
    _copy(ROOT / OWN, tree)
    for page in PAGES:
        text = page.read_text("utf-8")
        for target, path in targets(page):
            if path.is_dir():
                text = text.replace(f"]({target})", f"]({target.rstrip('/')}/README.md)")
                _list_folder(path, tree)
            elif path not in PAGES:
                _copy(path, tree)
        written = tree / page.relative_to(ROOT)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(text, "utf-8")


def _copy(path: Path, tree: Path) -> None:
    copy = tree / path.relative_to(ROOT)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)


def _list_folder(folder: Path, tree: Path) -> None:
    if (folder / "README.md") in PAGES:
        return
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for path in files:
        _copy(path, tree)
    name = folder.relative_to(ROOT).as_posix()
    lines = [f"# {name}", "", *(f"- [{path.name}]({path.name})" for path in files)]
    (tree / name / "README.md").write_text("\n".join(lines) + "\n", "utf-8")


def build(folder: Path) -> Path:
    """The site, built in a folder; a link that leads nowhere ends it."""
    lay_out(folder / TREE)
    if folder != ROOT:
        shutil.copyfile(CONFIG, folder / CONFIG.name)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    site = folder / SITE
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        page.write_text(page.read_text("utf-8").replace(FETCHED, up + OWN), "utf-8")
    return site


if __name__ == "__main__":
    made = build(ROOT)
    print(f"the site is {made.relative_to(ROOT)}/index.html: open it in a browser")
