"""Numbers in what a script prints, by pattern, and totals in the arguments of its command."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

COUNTED = ("step", "epoch", "progress")
"""Groups of a pattern that say how far training is; at least one of them is needed."""
TOTAL, BAR_TOTAL, TOTAL_EPOCHS = "total", "total_of_bar", "total_epochs"
"""Groups with the total of `step` or `progress`, the total of a bar, and the total of epochs."""
TOTALS = (TOTAL, BAR_TOTAL, TOTAL_EPOCHS)
LONGEST_LINE = 4096
"""Characters of a line that are looked at."""
_NUMBER = r"[-+]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_IS = r"['\"]?[\s:=\[#(]{1,4}"
_OF = r"\s*(?:/|\bof\b)\s*"
USUAL = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        rf"\bepoch{_IS}(?P<epoch>{_NUMBER})(?:{_OF}(?P<total_epochs>\d+))?",
        rf"\b(?:global[_ ])?(?:step|iter|iters|iteration){_IS}(?P<step>{_NUMBER})"
        rf"(?:{_OF}(?P<total>\d[\d,_]*))?",
        rf"epoch{_IS}\d+\]?\s*\[\s*(?P<progress>\d+)\s*/\s*(?P<total>\d+)",  # Epoch: [3][120/390]
        r"%\|[^|]*\|\s*(?P<step>\d+)/(?P<total_of_bar>\d+)\s*\[",  # tqdm's bars
        # Keras' bars, and "120/900 loss 0.3"; no dates
        r"^\s*(?P<step>\d+)/(?P<total_of_bar>\d+)(?=\s+[\[━]|\s.*\bloss\b)(?!\s+\d+:\d)",
        rf"(?<!val )(?<!eval )(?<!test )(?<!validation )"
        rf"\b(?:train(?:ing)?[_ /])?loss{_IS}(?P<loss>{_NUMBER})",
    )
)
"""Patterns for logs as most scripts write them, where none is given."""
_NO_TRAINING = (
    r"\b(?:eval\w*|val|valid\w*|test(?:ing)?|predict\w*|infer\w*|sanity|download\w*|tokeniz\w*"
    r"|map|load\w*|generat\w*)\b"
)
_ASIDE = re.compile(
    rf"{_NO_TRAINING}(?:[^|=]{{0,60}}?\d+%\||[^|=\d]{{0,20}}(?:step|iter|epoch|\[?\s*\d+\s*/\s*\d))",
    re.IGNORECASE,
)
"""Bars and counts of something else than training: a validation, a download."""
_STEP_OPTIONS = r"max[-_]?steps|steps|num[-_]steps|total[-_]steps|max[-_]iters|train[-_]iters"
_EPOCH_OPTIONS = r"epochs|num[-_]epochs|max[-_]epochs|num[-_]train[-_]epochs"
_OPTION = re.compile(rf"-*(?:\w+\.)*(?:(?P<steps>{_STEP_OPTIONS})|(?P<epochs>{_EPOCH_OPTIONS}))")


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals that the command's own arguments give."""

    steps: float | None = None
    epochs: float | None = None


def find(line: str, patterns: Sequence[re.Pattern[str]]) -> dict[str, float]:
    """Return numbers by the names of the groups that have them; of two, the first pattern's.

    A total counts only together with the count that it was printed with.
    """
    found: dict[str, float] = {}
    line = line[:LONGEST_LINE]
    if patterns is USUAL and _ASIDE.search(line):
        return found
    for pattern in patterns:
        match = pattern.search(line)
        if match is None:
            continue
        texts = {name: text for name, text in match.groupdict().items() if text is not None}
        numbers = {name: _number(text) for name, text in texts.items()}
        new = {name: n for name, n in numbers.items() if n is not None and name not in found}
        counts = any(name in new for name in ("step", "progress"))
        for name in (TOTAL, BAR_TOTAL) if not counts else ():
            new.pop(name, None)
        if "epoch" not in new:
            new.pop(TOTAL_EPOCHS, None)
        found |= new
    return found


def totals_of(command: Sequence[str]) -> Totals:
    """Return the totals in arguments such as `--max-steps 900` and `trainer.max_epochs=3`."""
    steps = epochs = None
    for word, following in zip(command, [*command[1:], ""], strict=True):
        name, given, text = word.partition("=")
        match = _OPTION.fullmatch(name)
        if match is None or not (given or name.startswith("-")):
            continue
        number = _number(text if given else following)
        if number is not None and number >= 1 and number == int(number):
            steps, epochs = (number, epochs) if match["steps"] else (steps, number)
    return Totals(steps, epochs)


def _number(text: str) -> float | None:
    """Return None for what is no number, or none to count by (1e999)."""
    try:
        found = float(text.replace(",", ""))
    except ValueError:
        return None
    return found if math.isfinite(found) else None
