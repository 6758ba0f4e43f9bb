"""Text with styles, [bold]such[/bold] as this: measured, wrapped, written for a terminal or plain.

The marks are rich's, of which a few are enough here; to load rich takes longer than most commands
take altogether (docs/decisions/0019-the-shell.md).
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}
_TAG = re.compile(r"(\\*)\[([a-z#/@][^[]*?)\]")


class Styled(NamedTuple):
    """Text without marks, and what they said."""

    plain: str
    spans: tuple[tuple[int, int, str], ...] = ()
    """Start, end and code of each style, in the order in which they began."""

    def painted(self, start: int, end: int) -> str:
        """A stretch of it as a terminal understands it."""
        within = [(max(a, start), min(b, end), code) for a, b, code in self.spans]
        inside = [span for span in within if span[0] < span[1]]
        edges = sorted({start, end, *(at for a, b, _ in inside for at in (a, b))})
        parts = []
        for a, b in pairwise(edges):
            codes = [code for left, right, code in inside if left <= a and b <= right]
            text = self.plain[a:b]
            parts.append(f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text)
        return "".join(parts)

    def written(self, start: int, end: int, colour: bool) -> str:
        return self.painted(start, end) if colour and self.spans else self.plain[start:end]


def escape(text: str) -> str:
    """Text in which nothing is a mark."""
    found = _TAG.sub(lambda tag: rf"{tag[1] * 2}\[{tag[2]}]", text)
    return found + "\\" if found.endswith("\\") and not found.endswith("\\\\") else found


def styled(marked: str) -> Styled:
    if "[" not in marked:
        return Styled(marked)
    plain: list[str] = []
    spans: list[tuple[int, int, str]] = []
    open_: list[tuple[int, str, str]] = []
    at = length = 0
    for tag in _TAG.finditer(marked):
        slashes, name = tag.groups()
        before = marked[at : tag.start()] + "\\" * (len(slashes) // 2)
        if len(slashes) % 2:
            before += f"[{name}]"
        plain.append(before)
        length += len(before)
        at = tag.end()
        if len(slashes) % 2:
            continue
        if not name.startswith("/"):
            open_.append((length, name, _code(name)))
        elif open_:
            began, _, code = open_.pop(_opened(open_, name[1:].strip()))
            spans.append((began, length, code))
    plain.append(marked[at:])
    length += len(marked) - at
    spans += [(began, length, code) for began, _, code in open_]
    return Styled("".join(plain), tuple(sorted(span for span in spans if span[2])))


def _opened(open_: list[tuple[int, str, str]], name: str) -> int:
    """Which mark a closing one closes: the last of its name, or the last of all."""
    return next((n for n in reversed(range(len(open_))) if open_[n][1] == name), len(open_) - 1)


def _code(style: str) -> str:
    return ";".join(STYLES[word] for word in style.split() if word in STYLES)


def columns(text: str) -> int:
    """How wide a text is on a terminal."""
    if text.isascii() or not any(map(_is_odd, text)):
        return len(text)
    import unicodedata

    def wide(sign: str) -> int:
        if unicodedata.combining(sign) or sign in "\u200b\u200c\u200d":
            return 0
        return 2 if unicodedata.east_asian_width(sign) in "WF" else 1

    return sum(map(wide, text))


def _is_odd(sign: str) -> bool:
    """Whether it may take two columns of a terminal, or none."""
    return sign > "\u02ff" and not "\u0370" <= sign < "\u1100" and not "\u2010" <= sign < "\u2e80"


def cut(text: str, width: int) -> int:
    """How many of its characters fit into so many columns."""
    if columns(text) <= width:
        return len(text)
    if len(text) == columns(text):
        return width
    return next(n for n in range(len(text)) if columns(text[: n + 1]) > width)


def lines(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Start and end of each line: broken between words, or inside one that is too long for it."""
    start = 0
    for whole in text.split("\n"):
        yield from _broken(whole, start, max(width, 1))
        start += len(whole) + 1


def _broken(text: str, offset: int, width: int) -> Iterator[tuple[int, int]]:
    start = 0
    while columns(text[start:].rstrip()) > width:
        most = start + max(cut(text[start:], width), 1)
        blank = most if text[most : most + 1] == " " else text.rfind(" ", start, most)
        end = blank if text[start:blank].strip() and blank > start else most
        yield offset + start, offset + start + len(text[start:end].rstrip())
        start = end + len(text[end:]) - len(text[end:].lstrip(" "))
    yield offset + start, offset + start + len(text[start:].rstrip())
