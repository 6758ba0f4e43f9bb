"""All figures and tables, in the paper's order."""

from collections.abc import Iterable

from boa.errors import InputError
from boa.paper import frontier_pollux, frontier_rubick
from boa.paper.study import Study

_MODULES = (frontier_pollux, frontier_rubick)
STUDIES: dict[str, Study] = {module.STUDY.name: module.STUDY for module in _MODULES}


def studies(names: Iterable[str]) -> list[Study]:
    chosen = []
    for name in dict.fromkeys(names):
        if name not in STUDIES:
            raise InputError("NAME", name, f"one of {', '.join(STUDIES)}")
        chosen.append(STUDIES[name])
    return chosen
