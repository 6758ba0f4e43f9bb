"""Field tables in docs/ as the formats declare them; as a program (`make tables`), writes them."""

from pathlib import Path

from boa.formats.kinds import format_of
from boa.formats.tables import refreshed

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "<!-- end -->" in page.read_text("utf-8"))


def as_declared(page: str) -> str:
    return refreshed(page, format_of)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(as_declared(path.read_text("utf-8")), "utf-8")
