"""Priors from the catalogue: beliefs about a class before any of its jobs has run."""

from collections.abc import Mapping

from boa.catalogue.calibration import class_name, default_slowdown, rescale_s, slowdown_factor
from boa.catalogue.figures import known_figures
from boa.catalogue.measured_profiles import AdaptiveProfile, fitted_truth
from boa.catalogue.own import own_figures, own_profile
from boa.catalogue.rates import best_rates, widest_measured
from boa.goodput.efficiency import Convergence, gain
from boa.goodput.tuning import Gains
from boa.model.profile import ClassProfile
from boa.model.speedup import Floats
from boa.model.workload import GpuType
from boa.units import GpuName


def catalogue_classes() -> tuple[str, ...]:
    """The classes that `catalogue_profile` knows."""
    figures = known_figures("sia")
    return (*map(class_name, figures.applications), *own_figures())


def catalogue_profile(name: str, gpu_types: Mapping[GpuName, GpuType]) -> ClassProfile | None:
    """A catalogue model by its class's name (resnet18, bert, …), on those of these GPU types that
    it was measured on; None if the catalogue does not know it, or none of them.

    The same figures that the simulator takes for the truth where it is given no profiles: fitted
    step times, Sia's calibration and rescaling times. Progress counts useful iterations at the
    smallest batch size. Rubick's models are not here: at a fixed batch size a model has no work of
    its own (its jobs say how many steps they take). Our own are, for the steps of one GPU.
    """
    truth = fitted_truth(known_figures("sia"))
    application = next((app for app in truth.applications if class_name(app) == name), None)
    profile = None if application is None else truth.applications[application]
    if application is None or not isinstance(profile, AdaptiveProfile):
        return own_profile(name, gpu_types)
    slowdown = slowdown_factor(default_slowdown(truth.system), application)
    rates = {
        gpu: best_rates(
            profile.timings[gpu],
            profile.limits[gpu],
            _gains_by_epoch(profile.convergence),
            widest=widest_measured(profile.limits[gpu], profile.measured_to[gpu]),
            gpus_per_node=kind.gpus_per_node,
        )
        / slowdown
        for gpu, kind in gpu_types.items()
        if gpu in profile.timings
    }
    if not rates:
        return None
    return ClassProfile(
        name=name,
        work=tuple(profile.convergence.epoch_progress.tolist()),
        rates=rates,
        rescale_s=rescale_s(truth.system, application),
    )


def _gains_by_epoch(convergence: Convergence) -> Gains:
    def gains(totals: Floats) -> Floats:
        return gain(convergence, totals.reshape(-1)).reshape(-1, *totals.shape)

    return gains
