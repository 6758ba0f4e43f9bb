"""What is said of a policy once holds everywhere: of its class, in the docs, in what is served."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import boa
from boa.errors import InputError
from boa.formats.service import load_config
from boa.formats.service_fields import CONFIG as FORMAT
from boa.model.cluster import ClusterView, JobView
from boa.model.policies import (
    KNOB_NAMES,
    POLICIES,
    PolicyFacts,
    live_policies,
    policy_table,
    scheduled_policies,
)
from boa.model.service import ServiceConfig
from boa.model.workload import GpuType
from boa.policy.registry import Knobs, choose
from boa.server import service
from lone_jobs import Curves

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
def test_a_live_policy_decides_on_the_size_of_the_cluster_or_is_told_it(
    facts: PolicyFacts,
) -> None:
    assert not facts.live or facts.knob in ("budget", "target", "knob", "nodes")
    assert (facts.name in scheduled_policies()) == (facts.live and facts.knob != "nodes")


@EVERY
def test_the_service_takes_live_policies_and_no_others(facts: PolicyFacts, tmp_path: Path) -> None:
    file = tmp_path / "boa.yaml"
    said = f"policy: {facts.name}\ntarget_efficiency: 0.5\nknob: 0.5\n{TYPES}"
    file.write_text(said, encoding="utf-8")
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


TYPES = "gpu_types: {T4: {price: 1.0, gpus_per_node: 4, max_nodes: 2}}\n"
CONFIG: dict[str, Any] = {
    "budget": 4.0,
    "gpu_types": {},
    "max_nodes": {},
    "data_dir": Path("data"),
    "db": "sqlite://",
}


def test_a_fixed_cluster_has_to_be_told_how_large_it_is() -> None:
    config = {**CONFIG, "policy": "gavel", "gpu_types": {"T4": GpuType(name="T4")}}
    with pytest.raises(InputError, match=r"gpu_types.T4.max_nodes: got null; expected a number of"):
        service._policy(ServiceConfig(**config))
    policy = service._policy(ServiceConfig(**config | {"max_nodes": {"T4": 3}}))
    job = JobView(
        id="a",
        job_class="any",
        arrival=0.0,
        serial=0,
        epoch=0,
        prediction=Curves(0.9),
    )
    view = ClusterView(now=0.0, jobs=[job], nodes=(), gpu_types=config["gpu_types"])
    decision = policy.decide(view)
    assert decision.nodes is not None
    assert len(decision.nodes) == 3
    assert policy.decide(replace(view, jobs=())).nodes == ()


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
