"""Figures for known models and GPU types, offers with prices, and readers of public formats."""

from boa.catalogue.calibration import Slowdown, class_name
from boa.catalogue.estimate import workload_from_trace
from boa.catalogue.figures import AdaptiveFigures, Figures, PlanFigures, known_figures
from boa.catalogue.formats import read_profiles
from boa.catalogue.from_files import workload_from_files
from boa.catalogue.offers import OFFERS, Offer, gpu_types
from boa.catalogue.traces import dump_trace, read_trace

__all__ = [
    "OFFERS",
    "AdaptiveFigures",
    "Figures",
    "Offer",
    "PlanFigures",
    "Slowdown",
    "class_name",
    "dump_trace",
    "gpu_types",
    "known_figures",
    "read_profiles",
    "read_trace",
    "workload_from_files",
    "workload_from_trace",
]
