"""Learn the shipped figures anew: `python -m boa.catalogue.rebuild ../shared/data`."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from boa.catalogue.figures import Figures, figures_document
from boa.catalogue.formats import SOURCES, read_profiles

SIA_APPLICATIONS = ("cifar10", "deepspeech2", "bert", "yolov3", "imagenet")
POLLUX_APPLICATIONS = ("ncf",)
"""Applications that Sia dropped; measured on T4 only."""
RUBICK_APPLICATIONS = ("gpt2", "bert", "t5", "roberta", "llama7", "llama30", "vit")


def learned_document(data: Path) -> dict[str, Any]:
    """All shipped figures from the public files."""
    sia = read_profiles(data / "sia" / "traces", applications=SIA_APPLICATIONS)
    pollux = read_profiles(data / "pollux" / "traces", applications=POLLUX_APPLICATIONS)
    rubick = read_profiles(data / "rubick", applications=RUBICK_APPLICATIONS)
    both = replace(
        sia,
        source=f"{SOURCES['sia']}; {', '.join(POLLUX_APPLICATIONS)}: {SOURCES['pollux']}",
        applications={**sia.applications, **pollux.applications},
    )
    return {
        "version": 1,
        "sia": figures_document(_in_order(both, (*SIA_APPLICATIONS, *POLLUX_APPLICATIONS))),
        "rubick": figures_document(_in_order(rubick, RUBICK_APPLICATIONS)),
    }


def _in_order(known: Figures, names: tuple[str, ...]) -> Figures:
    return replace(known, applications={name: known.applications[name] for name in names})


def dump_figures(document: dict[str, Any]) -> str:
    """JSON with one line per list of numbers, so that a change shows where it is."""
    return "".join(_lines(document, "")) + "\n"


def _lines(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict) and any(isinstance(v, (dict, list)) for v in value.values()):
        yield "{\n"
        for i, (key, inner) in enumerate(value.items()):
            yield f"{',' if i else ''}{chr(10) if i else ''}{indent} {json.dumps(key)}: "
            yield from _lines(inner, indent + " ")
        yield f"\n{indent}}}"
    else:
        yield json.dumps(value, separators=(", ", ": "), allow_nan=False)


def main() -> None:
    target = Path(__file__).with_name("figures.json")
    target.write_text(dump_figures(learned_document(Path(sys.argv[1]))), encoding="utf-8")
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
