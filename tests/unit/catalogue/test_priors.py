"""Profiles of the catalogue's models, as a new class starts from them."""

import numpy as np
import pytest

from boa.catalogue.figures import known_figures
from boa.catalogue.measured_profiles import fitted_truth
from boa.catalogue.offers import OFFERS, gpu_types
from boa.catalogue.priors import catalogue_classes, catalogue_profile
from boa.sim.knowledge import truths_of

TYPES = gpu_types(["T4", "A100"])


@pytest.mark.parametrize("name", ["resnet18", "bert"])
def test_a_profile_is_what_the_simulator_takes_for_the_truth(name: str) -> None:
    truths = truths_of(fitted_truth(known_figures("sia")), TYPES, slowdown=None, rescale=None)
    truth = next(t for t in truths.values() if t.name == name)
    profile = catalogue_profile(name, TYPES)
    assert profile is not None
    assert list(profile.rates) == ["T4", "A100"]
    for gpu, table in profile.rates.items():
        np.testing.assert_array_equal(table, truth.rates(gpu))
    assert len(profile.work) == len(profile.rates["T4"])
    assert profile.rescale_s == truth.rescale_s


def test_only_the_types_that_a_model_was_measured_on_are_in_its_profile() -> None:
    profile = catalogue_profile("resnet18", gpu_types(["T4", "A800"]))
    assert profile is not None
    assert list(profile.rates) == ["T4"]
    assert catalogue_profile("resnet18", gpu_types(["A800"])) is None


def test_names_that_the_catalogue_does_not_know_have_no_profile() -> None:
    assert catalogue_profile("my-own-model", TYPES) is None
    assert catalogue_profile("cifar10", TYPES) is None, "the class is called resnet18"


def test_every_class_that_is_named_has_a_profile_on_some_type() -> None:
    names = catalogue_classes()
    assert {"resnet18", "resnet50", "bert", "deepspeech2", "yolov3", "neumf"} <= set(names)
    types = gpu_types(list(OFFERS))
    assert all(catalogue_profile(name, types) is not None for name in names)
