"""How classes usually scale: what a class is taken for that has shown nothing yet."""

from collections.abc import Iterable

import numpy as np

from boa.goodput.belief import SERIAL
from boa.scheduler.learn.class_knowledge import Known

LEAST_SERIAL = 0.01
"""No class is taken to scale better than this: the mean is one of logarithms."""


def usual_serial(classes: Iterable[Known]) -> float:
    """Share of the work that does not scale, by classes that were run at several widths.

    A class that has shown nothing yet is taken to be like them, and like the catalogue's.
    """
    found = [SERIAL]
    for known in classes:
        for gpu, settled in known.settled.items():
            curve, low, high = known.picture.expected.get(gpu), settled[0], settled[-1]
            if curve is None or low == high or not {low, high} <= {*curve.widths}:
                continue
            times = known.picture.work @ (1.0 / curve.rates)
            speedup = float(times[curve.widths.index(low)] / times[curve.widths.index(high)])
            more = high / low
            found.append(min(max((more / speedup - 1.0) / (more - 1.0), LEAST_SERIAL), 1.0))
    return float(np.exp(np.mean(np.log(found))))
