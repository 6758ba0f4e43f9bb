"""The public surface of `boa` is exact: nothing more, nothing less, nothing private."""

import types

import pytest

import boa


def test_everything_that_is_exported_exists() -> None:
    assert [name for name in boa.__all__ if not hasattr(boa, name)] == []


def test_every_public_name_is_exported() -> None:
    """Names come from their homes when first used; here and now everything has been used."""
    offered = [name for name in boa.__all__ if getattr(boa, name) is not None]
    public = {
        name
        for name, value in vars(boa).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    allowed = {"Any", "TYPE_CHECKING", "import_module"}
    assert public - allowed <= set(offered)
    assert set(boa._HOME_OF) == set(offered) - {"__version__"}


def test_a_name_that_is_not_there_is_named() -> None:
    with pytest.raises(AttributeError, match="constrict"):
        boa.constrict  # noqa: B018


def test_the_names_are_sorted_and_unique() -> None:
    assert list(boa.__all__) == sorted(set(boa.__all__))


def test_what_the_readme_promises_is_there() -> None:
    assert {"load_workload", "plan", "frontier", "evaluate", "budget_for"} <= set(boa.__all__)


def test_the_functions_are_the_functions_and_not_the_modules_of_the_same_name() -> None:
    assert all(callable(getattr(boa, name)) for name in ("plan", "frontier", "evaluate"))
