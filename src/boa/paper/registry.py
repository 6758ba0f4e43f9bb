"""All figures and tables, in the paper's order; then those of our own."""

from collections.abc import Iterable

from boa.errors import InputError
from boa.paper import (
    actual_usage,
    algorithm_1,
    causes,
    efficiency,
    frontier_pollux,
    frontier_rubick,
    frontier_sia,
    implementation,
    intro,
    prediction,
    restarts,
    rivals,
    routing,
    speedups,
    traces,
    usage,
    variability,
    workload_table,
)
from boa.paper.study import Study

_ALL: tuple[Study, ...] = (
    intro.STUDY,
    speedups.STUDY,
    workload_table.STUDY,
    frontier_pollux.STUDY,
    frontier_rubick.STUDY,
    frontier_sia.STUDY,
    implementation.STUDY,
    efficiency.STUDY,
    usage.STUDY,
    prediction.STUDY,
    variability.STUDY,
    algorithm_1.STUDY,
    actual_usage.STUDY,
    routing.STUDY,
    rivals.STUDY,
    causes.STUDY,
    restarts.STUDY,
    *traces.STUDIES,
)
STUDIES: dict[str, Study] = {study.name: study for study in _ALL}


def studies(names: Iterable[str]) -> list[Study]:
    chosen = []
    for name in dict.fromkeys(names):
        if name not in STUDIES:
            raise InputError("NAME", name, f"one of {', '.join(STUDIES)}")
        chosen.append(STUDIES[name])
    return chosen
