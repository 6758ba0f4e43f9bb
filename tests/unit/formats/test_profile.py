"""Profile files: what they may say, and that the schema agrees."""

import json
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from boa.errors import InputError
from boa.formats.profile import PROFILE as FORMAT
from boa.formats.profile import profile_document, read_profile
from documents import PROFILE


def fits(document: Any) -> bool:
    return bool(Draft202012Validator(FORMAT.schema()).is_valid(document))


def changed(path: str, value: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(PROFILE))
    *way, last = path.split(".")
    here = document
    for key in way:
        here = here[key]
    here[last] = value
    return document


def test_rates_begin_at_width_1_in_the_file_and_at_0_in_memory() -> None:
    assert fits(PROFILE)
    profile = read_profile(PROFILE)
    assert (profile.name, profile.work, profile.rescale_s) == ("resnet18", (300.0, 900.0), 50.0)
    assert profile.rates["T4"].shape == (2, 2, 4)
    assert np.array_equal(profile.rates["T4"][1], [[0, 1.0, 1.8, 0], [0, 0, 1.6, 2.2]])
    assert profile_document(profile) == PROFILE
    assert set(FORMAT.schema()["properties"]) == set(PROFILE)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("class", "a b"),
        ("rescale_s", -1),
        ("work", []),
        ("work", [0]),
        ("work", ["1"]),
        ("rates", {}),
        ("rates", {"": PROFILE["rates"]["T4"]}),
        ("rates.T4", []),
        ("rates.T4", {"one_node": [[1], [1]]}),
        ("rates.T4.one_node", []),
        ("rates.T4.one_node", [[1, 2, 3], []]),
        ("rates.T4.one_node", [[1, 2, -3], [1, 2, 3]]),
        ("rates.T4.one_node", [[1, 2, True], [1, 2, 3]]),
        ("rates.T4.within", [[1, 2, 3], [1, 2, 3]]),
        ("epochs", 2),
    ],
)
def test_reader_and_schema_refuse_the_same(path: str, value: Any) -> None:
    document = changed(path, value)
    assert not fits(document)
    with pytest.raises(InputError) as caught:
        read_profile(document)
    assert caught.value.field.startswith(path)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([[1, 2, 3]], r"one_node: got '1 lists'; expected one list per epoch in work: 2"),
        ([[1, 2, 3], [1, 2]], r"one_node\[1\]: got '2 rates'"),
        ([[1, 2], [1, 2]], r"T4: got .*; expected as many widths across nodes as on one"),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(value: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read_profile(changed("rates.T4.one_node", value))
