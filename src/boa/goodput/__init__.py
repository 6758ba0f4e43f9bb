"""How s(k) is learned: throughput from step times, gain from validation runs, the best of both."""

from boa.goodput.efficiency import Convergence, efficiency, gain
from boa.goodput.fit import Measurements, fit_throughput, relative_errors
from boa.goodput.speedup import DeviceProfile, progress_rates
from boa.goodput.throughput import Throughput, accumulation_time, iteration_time, step_time

__all__ = [
    "Convergence",
    "DeviceProfile",
    "Measurements",
    "Throughput",
    "accumulation_time",
    "efficiency",
    "fit_throughput",
    "gain",
    "iteration_time",
    "progress_rates",
    "relative_errors",
    "step_time",
]
