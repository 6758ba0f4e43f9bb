"""Models measured by ourselves, as priors."""

import pytest

from boa.catalogue.offers import gpu_types
from boa.catalogue.own import own_figures
from boa.catalogue.priors import catalogue_classes, catalogue_profile

MODELS = ("resnet18-cifar", "transformer-124m")


@pytest.mark.parametrize("name", MODELS)
def test_a_measured_model_starts_from_its_step_time_on_one_gpu(name: str) -> None:
    profile = catalogue_profile(name, gpu_types(["H200", "T4"]))
    figures = own_figures()[name]["H200"]
    assert profile is not None
    assert list(profile.rates) == ["H200"]
    assert profile.rates["H200"].shape == (1, 2, 2)
    assert profile.rates["H200"][0, 0, 1] == pytest.approx(1 / figures.step_s[figures.batch])
    assert profile.rescale_s == figures.rescale_s > 0


def test_a_type_it_was_not_measured_on_says_nothing() -> None:
    assert catalogue_profile("transformer-124m", gpu_types(["A100"])) is None


def test_the_catalogue_lists_them() -> None:
    assert set(MODELS) <= set(catalogue_classes())


@pytest.mark.parametrize("name", MODELS)
def test_larger_batches_take_longer_but_less_per_sample(name: str) -> None:
    times = sorted(own_figures()[name]["H200"].step_s.items())
    (least, fast), (most, slow) = times[0], times[-1]
    assert slow > fast
    assert slow / most < fast / least
