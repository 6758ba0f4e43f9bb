"""The vocabulary in docs/concepts/words.md points to code that is there."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = (ROOT / "docs" / "concepts" / "words.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:-1] for line in WORDS.splitlines() if line.startswith("| ")]


def test_every_file_that_is_named_is_there() -> None:
    named = re.findall(r"`([\w-]+/[\w/.-]+\.(?:py|ts))`", WORDS)
    assert len(named) > 30
    files = [ROOT / name if name.startswith("web/") else ROOT / "src/boa" / name for name in named]
    assert [file for file in files if not file.is_file()] == []


def test_no_word_stands_twice_for_the_same() -> None:
    """But for a rescaling, which is the paper's r and what happens to a job."""
    counted = Counter(row[0].strip() for row in ROWS if row[0].strip() not in ("word", "---"))
    assert [word for word, count in counted.items() if count > 1] == ["rescaling"]
