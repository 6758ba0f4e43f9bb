"""Assumptions of the public simulators beside the profiles: rescaling times and calibration."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from boa.catalogue.figures import System
from boa.units import Seconds

Slowdown: TypeAlias = Literal["sia", "none"]

SIA_SLOWDOWN: Mapping[str, float] = {"cifar10": 1.8, "ncf": 1.5}
"""Sia divides every rate of progress by this, and by 1.2 for any other model."""
SIA_SLOWDOWN_OTHERS = 1.2
SIA_RESCALE_S: Mapping[str, Seconds] = {
    "cifar10": 50.0,
    "deepspeech2": 25.0,
    "bert": 120.0,
    "yolov3": 80.0,
    "imagenet": 250.0,
    "ncf": 15.0,
}
POLLUX_RESCALE_S = 30.0
RUBICK_RESCALE_S = 260.0

RIGID_BATCH: Mapping[str, int] = {"ncf": 32768}
"""Models that the published Pollux runs train at one batch size, on one GPU: each is over in less
time than it takes to learn anything about it."""

CLASS_NAMES: Mapping[str, str] = {"cifar10": "resnet18", "imagenet": "resnet50", "ncf": "neumf"}
"""Applications that the artifacts name after a data set; we name classes after the model."""


def class_name(application: str) -> str:
    return CLASS_NAMES.get(application, application)


def rescale_s(system: System, application: str) -> Seconds:
    """r_i: Sia measured it per model, Pollux takes 30 s for all, Rubick 260 s."""
    if system == "rubick":
        return RUBICK_RESCALE_S
    if system == "pollux":
        return POLLUX_RESCALE_S
    return SIA_RESCALE_S.get(application, POLLUX_RESCALE_S)


def slowdown_factor(slowdown: Slowdown, application: str) -> float:
    """How much slower than its profile a model runs."""
    if slowdown == "none":
        return 1.0
    return SIA_SLOWDOWN.get(application, SIA_SLOWDOWN_OTHERS)


def default_slowdown(system: System) -> Slowdown:
    """Sia's own for profiles in its format; nobody else corrects theirs."""
    return "sia" if system == "sia" else "none"
