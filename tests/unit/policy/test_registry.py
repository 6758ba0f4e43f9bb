"""What is said of a policy once holds everywhere: of its class, in the docs, in what is served."""

from pathlib import Path
from typing import Any

import pytest

import boa
from boa.errors import InputError
from boa.formats.service import load_config
from boa.formats.service_fields import CONFIG as FORMAT
from boa.model.policies import KNOB_NAMES, POLICIES, PolicyFacts, live_policies, policy_table
from boa.model.service import ServiceConfig
from boa.policy.registry import Knobs, choose
from boa.server import service

VALUES: dict[str, Any] = {
    "budget": 40.0,
    "target": 0.5,
    "nodes": {"T4": 4},
    "width": 2,
    "knob": 0.5,
}
DOCS = Path(boa.__file__).parents[2] / "docs"
EVERY = pytest.mark.parametrize("facts", POLICIES.values(), ids=POLICIES)


def knobs_of(facts: PolicyFacts) -> Knobs:
    return Knobs(**({} if facts.knob is None else {facts.knob: VALUES[facts.knob]}))


@EVERY
def test_a_policy_goes_by_the_name_it_is_asked_for(facts: PolicyFacts) -> None:
    assert choose(facts.name, knobs_of(facts)).policy.name == facts.name


@EVERY
def test_a_policy_declares_whether_it_decides_job_by_job(facts: PolicyFacts) -> None:
    kind = type(choose(facts.name, knobs_of(facts)).policy)
    assert vars(kind)["by_job"] is facts.by_job


@EVERY
def test_only_who_decides_job_by_job_acts_at_events(facts: PolicyFacts) -> None:
    assert facts.by_job or facts.interval_s is not None


@EVERY
def test_a_live_policy_decides_on_the_size_of_the_cluster(facts: PolicyFacts) -> None:
    assert not facts.live or facts.knob in ("budget", "target", "knob")


@EVERY
def test_the_service_takes_live_policies_and_no_others(facts: PolicyFacts, tmp_path: Path) -> None:
    file = tmp_path / "boa.yaml"
    file.write_text(f"policy: {facts.name}\ntarget_efficiency: 0.5\nknob: 0.5\n", encoding="utf-8")
    if facts.live:
        config = load_config(file, {}, lambda *_: None)
        assert service._policy(config).name == facts.name
        return
    with pytest.raises(InputError) as wrong:
        load_config(file, {}, lambda *_: None)
    assert wrong.value.field.endswith("policy")
    assert all(name in wrong.value.expected for name in live_policies())
    with pytest.raises(InputError):
        service._policy(ServiceConfig(**CONFIG | {"policy": facts.name}))


CONFIG: dict[str, Any] = {
    "budget": 4.0,
    "gpu_types": {},
    "max_nodes": {},
    "data_dir": Path("data"),
    "db": "sqlite://",
}


def test_the_default_of_the_service_is_a_live_policy() -> None:
    assert ServiceConfig(**CONFIG).policy == live_policies()[0]


def test_the_schema_of_boa_yaml_names_the_live_policies() -> None:
    assert FORMAT.schema()["properties"]["policy"]["enum"] == list(live_policies())


def test_every_knob_has_a_place_among_the_knobs() -> None:
    assert set(KNOB_NAMES) == set(Knobs.__dataclass_fields__) - {"seed", "symmetric"}


def test_the_table_in_the_docs_is_the_registry() -> None:
    assert policy_table() in (DOCS / "concepts" / "policies.md").read_text(encoding="utf-8")


def test_the_reference_of_boa_yaml_names_the_live_policies() -> None:
    (row,) = [
        line
        for line in (DOCS / "config.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `policy` |")
    ]
    assert [name for name in POLICIES if f"`{name}`" in row] == list(live_policies())
