"""Values of secrets in what a job prints: each of their bytes becomes a *, but ends of lines.

As long as they were, so that places in a log stay what they are. Runs without the rest of the
package, as does the supervisor, which puts a mask over all output before it is written anywhere.
"""

import binascii

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST = 6
"""Bytes of the shortest value that is looked for: shorter ones would be found everywhere."""
WIDTHS = 76, 64
LONGEST_WRAPPED = 1024
"""Bytes of the longest value whose base64 is looked for in lines: each is one more to look for in
all that a job prints."""
STARS = bytes(10 if byte == 10 else 42 for byte in range(256))
"""Every byte as a *, but the ends of lines."""


class Mask:
    """Over a stream that comes in pieces. What may be the beginning of a value waits for more."""

    def __init__(self, values: "Iterable[str]") -> None:
        self.forms = forms(values)
        self.longest = max(map(len, self.forms), default=0)
        self._held, self._covered = b"", 0

    def feed(self, data: bytes) -> bytes:
        if not self.forms:
            return data
        data = self._held + data
        return self._told(data, len(data) - self._begun(data))

    def rest(self) -> bytes:
        """Nothing more comes: what was held back was only the beginning of a value."""
        return self._told(self._held, len(self._held))

    def _told(self, data: bytes, whole: int) -> bytes:
        """So much of it, masked; the rest is held."""
        found = [(0, self._covered)]
        for form in self.forms:
            at = data.find(form)
            while at >= 0:
                found.append((at, at + len(form)))
                at = data.find(form, at + 1)
        masked = bytearray(data)
        for begin, end in found:
            masked[begin:end] = data[begin:end].translate(STARS)
        # values that lie in what is held altogether are found again
        ends = [end - whole for begin, end in found if begin < whole]
        self._held, self._covered = data[whole:], max(0, *ends, found[0][1] - whole)
        return bytes(masked[:whole])

    def _begun(self, data: bytes) -> int:
        """Bytes at the end that a value may begin with."""
        most = 0
        for form in self.forms:
            at = data.find(form[:1], max(len(data) - len(form) + 1, 0))
            while at >= 0:
                if form.startswith(data[at:]):
                    most = max(most, len(data) - at)
                    break
                at = data.find(form[:1], at + 1)
        return most


def forms(values: "Iterable[str]") -> "list[bytes]":
    """Forms that values take: as they are, line by line, and inside of base64."""
    found: set[bytes] = set()
    for value in values:
        plain = value.encode("utf-8", "surrogateescape")
        found.update(line for line in (plain, *plain.splitlines()) if len(line) >= LEAST)
        if len(plain) >= LEAST:
            found.update(form for shift in range(3) for form in _base64(plain, shift))
            found.update(_wrapped(plain))
    return sorted(found)


def _base64(plain: bytes, shift: int) -> "Iterable[bytes]":
    """As it is after so many other bytes: without the first and last signs, which depend on what
    is beside it."""
    whole = binascii.b2a_base64(b"\0" * shift + plain, newline=False).rstrip(b"=")
    first = (shift * 8 + 5) // 6
    last = len(whole) - (1 if (len(plain) + shift) % 3 else 0)
    text = whole[first:last]
    if len(text) < LEAST:
        return ()
    return (text, text.replace(b"+", b"-").replace(b"/", b"_"))


def _wrapped(plain: bytes) -> "Iterable[bytes]":
    """Lines of its base64, as `base64` and PEM break it where it is by itself."""
    if len(plain) <= LONGEST_WRAPPED:
        for text in _base64(plain, 0):
            for width in WIDTHS if len(text) > min(WIDTHS) else ():
                lines = (text[at : at + width] for at in range(0, len(text), width))
                yield from (line for line in lines if len(line) >= LEAST)


def masked(text: str, values: "Iterable[str]") -> str:
    """A whole text, such as the reason of an end."""
    mask = Mask(values)
    data = text.encode("utf-8", "surrogateescape")
    return (mask.feed(data) + mask.rest()).decode("utf-8", "replace")
