"""A frozen value with other fields, as `dataclasses.replace` makes it."""

import dataclasses
from dataclasses import dataclass, field

import pytest

from boa.model.job import JobRecord, JobSpec
from boa.replacing import replace


@dataclass(frozen=True, slots=True)
class Checked:
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low > high")


@dataclass(frozen=True)
class Counted:
    name: str
    kept: dict[str, int] = field(init=False, default_factory=dict)


def test_a_copy_is_equal_to_that_of_dataclasses() -> None:
    spec = JobSpec(job_class="a", run=("true",))
    job = JobRecord(id="1", spec=spec, serial=0, submitted_at=3.0)
    copy = replace(job, epoch=2, progress=0.5)
    assert copy == dataclasses.replace(job, epoch=2, progress=0.5)
    assert copy != job
    assert copy.spec is spec


def test_a_copy_is_checked_as_a_new_value_is() -> None:
    with pytest.raises(ValueError, match="low > high"):
        replace(Checked(1, 2), low=3)


def test_a_copy_has_its_own_fields_that_are_not_arguments() -> None:
    before = Counted("a")
    before.kept["x"] = 1
    assert replace(before, name="b").kept == {}


def test_a_field_that_there_is_not_is_refused() -> None:
    job = JobRecord(id="1", spec=JobSpec(job_class="a", run=("true",)), serial=0, submitted_at=3.0)
    with pytest.raises(TypeError):
        replace(job, epochs=2)  # type: ignore[call-arg]
