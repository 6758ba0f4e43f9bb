"""The lock file is what is asked for, and bounded."""

import supply_chain


def test_what_runs_in_production_is_locked_within_bounds() -> None:
    assert supply_chain.faults(supply_chain.locked()) == []


def test_a_package_that_is_not_locked_or_out_of_bounds_is_named() -> None:
    lock = {**supply_chain.locked(), "numpy": "1.0", "boto3": "1.40.0"}
    del lock["click"]
    missing, outside = supply_chain.faults(lock)
    assert "click is missing; expected click" in missing
    assert "numpy==1.0; expected numpy" in outside


def test_needs_of_needs_are_locked_too() -> None:
    assert {"starlette", "h11", "botocore", "psycopg-binary"} <= supply_chain.locked().keys()
