"""`boa.yaml`, and flags over it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from jsonschema import Draft202012Validator

from boa.errors import InputError
from boa.formats.budget_terms import TERMS
from boa.formats.keeping import KEEPING
from boa.formats.notify import NOTIFY
from boa.formats.profile import profile_document
from boa.formats.service import load_config
from boa.formats.service_fields import CONFIG as FORMAT
from boa.model.history_kept import HistoryKept
from boa.model.profile import ClassProfile
from boa.model.provider_settings import AwsMachine, AwsSettings, RaySettings
from boa.model.service import ServiceConfig
from boa.model.workload import GpuType
from documents import CONFIG

pytestmark = pytest.mark.usefixtures("no_gpus")
PROFILE = ClassProfile(name="bert", work=(1.0,), rates={"T4": np.array([[[0.0, 1.0], [0.0, 1.0]]])})


def catalogue(model: str, gpu_types: Mapping[str, GpuType]) -> ClassProfile | None:
    return PROFILE if model == "resnet18" and "T4" in gpu_types else None


def load(path: Path | None = None, **overrides: Any) -> ServiceConfig:
    return load_config(path, overrides, catalogue)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "bert.json").write_text(json.dumps(profile_document(PROFILE)))
    return written(tmp_path, CONFIG)


def written(folder: Path, document: Any) -> Path:
    path = folder / "boa.yaml"
    path.write_text(json.dumps(document))
    return path


def fits(document: Any) -> bool:
    return bool(Draft202012Validator(FORMAT.schema()).is_valid(document))


def test_a_calendar_says_the_budget_and_one_beside_it_what_the_week_comes_to(
    tmp_path: Path,
) -> None:
    periods = [{"name": "sunday", "days": ["sun"], "budget_per_hour": 30}]
    periods.append({"name": "other", "budget_per_hour": 9})
    document = {"calendar": {"periods": periods}}
    alone = load(written(tmp_path, document))
    assert alone.budget == pytest.approx(12.0)
    assert alone.calendar is not None
    assert alone.calendar.periods[0].budget == 30.0
    beside = load(written(tmp_path, document), budget_per_hour=24.0)
    assert beside.budget == pytest.approx(24.0)
    assert beside.calendar is not None
    assert beside.calendar.periods[0].budget == pytest.approx(60.0)
    assert alone.calendar_scaled == 1.0
    assert beside.calendar_scaled == pytest.approx(2.0)
    wrong = {**document, "policy": "sia-autoscale"}
    with pytest.raises(InputError, match=r"calendar: .*no other follows a budget"):
        load(written(tmp_path, wrong))


def test_every_field_arrives_in_the_config(file: Path) -> None:
    assert fits(CONFIG)
    config = load(file)
    assert (config.budget, config.max_spend) == (12.0, 40.0)
    assert (config.target_efficiency, config.knob) == (0.5, 2.0)
    assert config.gpu_types == {
        "T4": GpuType(name="T4", price=1.088, gpus_per_node=4),
        "A100": GpuType(name="A100"),
    }
    assert config.max_nodes == {"T4": 8}
    assert config.calendar is not None
    assert config.calendar.average == pytest.approx(12.0), "the budget beside it"
    assert config.data_dir == file.parent / "state", "relative to the file"
    assert config.db == "postgresql+psycopg://localhost/boa"
    assert (config.host, config.port, config.speed) == ("127.0.0.1", 9000, 60.0)
    assert (config.round_s, config.replan_s, config.keep_warm_s) == (30.0, 600.0, 0.0)
    assert (config.pacing_h, config.refused_s, config.backoff_s) == (12.0, 10.0, 1.0)
    assert (config.provision_s, config.release_s, config.log_bytes) == (30.0, 5.0, 512 * 1024)
    assert (config.snapshot_every_h, config.snapshots_kept) == (6.0, 10)
    assert config.keep == HistoryKept(events=5000, samples_days=30.0, jobs_days=365.0)
    assert (config.warm_parents, config.memory_share) == (2, 0.25)
    assert (config.policy, config.engine, config.cloud) == ("boa", "local", "local")


def test_what_is_said_of_tokens_tls_and_proxies_arrives(file: Path) -> None:
    config = load(file)
    assert config.token_file == str(file.parent / "token"), "relative to the file"
    assert (config.tls_cert, config.tls_key) == (str(file.parent / "cert.pem"), "/etc/boa/key.pem")
    assert config.trust_user_header == "X-Forwarded-User"
    assert config.trust_proxy == ("10.0.0.7", "10.1.0.0/16")
    assert config.trust_role == "viewer"


def test_what_is_said_of_ray_and_aws_arrives(file: Path) -> None:
    config = load(file)
    assert config.url == "http://10.0.0.5:8420"
    assert config.unpriced == {"A100"}
    assert config.ray == RaySettings(address="10.0.0.5:6379", nodes="fixed")
    assert config.aws == AwsSettings(
        region="us-east-1",
        image="ami-0abc",
        subnets=("subnet-0a", "subnet-0b"),
        security_groups=("sg-0c",),
        key_name="lab",
        instance_profile="boa-node",
        head="10.0.0.5:6379",
        setup="mount /shared\n",
        tags={"team": "vision"},
        endpoint="http://127.0.0.1:5000",
        machines={
            "T4": AwsMachine(instance_types=("g4dn.12xlarge",), spot=True),
            "A100": AwsMachine(instance_types=("p4d.24xlarge", "p4de.24xlarge")),
        },
    )


def test_ray_brings_its_own_nodes_and_has_to_be_told_their_types(tmp_path: Path) -> None:
    config = load(written(tmp_path, {"engine": "ray", "gpu_types": {"T4": None}}))
    assert (config.cloud, config.ray) == ("ray", RaySettings())
    with pytest.raises(InputError, match=r"^gpu_types: it is missing; .* with engine ray"):
        load(engine="ray")


def test_every_class_arrives_as_a_prior(file: Path) -> None:
    priors = load(file).priors
    known = priors["resnet18"]
    assert known.profile is PROFILE
    assert (known.arrivals_per_hour, known.arrivals_weight_h, known.measured_weight) == (4, 2, 0)
    assert priors["bert"].profile is not None
    assert np.array_equal(priors["bert"].profile.rates["T4"], PROFILE.rates["T4"])
    assert priors["bert"].measured_weight == 10.0
    assert (priors["new"].profile, priors["new"].arrivals_per_hour) == (None, None)


def test_flags_win_over_the_file_and_none_is_no_flag(file: Path) -> None:
    config = load(file, budget_per_hour=3.0, port=None, data_dir="/elsewhere")
    assert (config.budget, config.port, config.data_dir) == (3.0, 9000, Path("/elsewhere"))


@pytest.mark.parametrize(
    "name", ["boa.yaml", "boa-ray.yaml", "boa-aws.yaml", "boa-kubernetes.yaml"]
)
def test_the_shipped_examples_are_configs(examples: Path, name: str) -> None:
    assert fits(yaml.safe_load((examples / name).read_text("utf-8")))
    config = load_config(examples / name, {}, lambda model, types: PROFILE)
    assert set(config.gpu_types) == {"T4", "A100"}


def test_the_config_schema_is_a_valid_schema() -> None:
    Draft202012Validator.check_schema(FORMAT.schema())
    elsewhere = {field.name for field in (*KEEPING, *TERMS, NOTIFY)}
    assert set(FORMAT.schema()["properties"]) == set(CONFIG) | elsewhere


def test_packages_and_artifacts_are_kept_as_configured() -> None:
    config = load(packages={"max_mb": 2, "keep_days": 3}, artifacts={"keep_days": 4, "max_gb": 5})
    assert (config.package_bytes, config.packages_kept_days) == (2 * 1024**2, 3.0)
    assert (config.artifacts_kept_days, config.artifacts_bytes) == (4.0, 5 * 1024**3)
    assert load().artifacts_bytes is None


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        ("packages", "max_mb", 0),
        ("packages", "max_mb", 1e9),
        ("packages", "keep_days", -1),
        ("artifacts", "keep_days", "long"),
        ("artifacts", "max_gb", 0),
        ("artifacts", "max_tb", 1),
    ],
)
def test_a_wrong_word_on_keeping_names_its_field(section: str, field: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"{section}\.{field}"):
        load(None, **{section: {field: value}})


def changed(path: str, value: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(CONFIG))
    *way, last = path.split(".")
    here = document
    for key in way:
        here = here[key]
    here[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 2),
        ("budget_per_hour", 0),
        ("budget_per_hour", None),
        ("max_spend_per_hour", -1),
        ("target_efficiency", 1.5),
        ("knob", 0),
        ("policy", ""),
        ("engine", 1),
        ("engine", "slurm"),
        ("cloud", "moon"),
        ("gpu_types", {}),
        ("gpu_types", ["T4"]),
        ("gpu_types.T4.price", 0),
        ("gpu_types.T4.gpus_per_node", 0),
        ("gpu_types.T4.max_nodes", 0),
        ("gpu_types.T4.nodes", 1),
        ("data_dir", " "),
        ("data_dir", 1),
        ("db", "boa.db"),
        ("port", 65_536),
        ("port", -1),
        ("port", "8420"),
        ("speed", 0),
        ("round_s", 0),
        ("keep_warm_s", -1),
        ("pacing_h", 0),
        ("billing", "minute"),
        ("priorities", {"urgent": 0.5}),
        ("priorities", {"normal": 2}),
        ("warm_parents", -1),
        ("warm_parents", 101),
        ("memory_share", -0.1),
        ("memory_share", 1),
        ("log_mb", 0),
        ("local", {"provision": 1}),
        ("local.provision_s", -1),
        ("url", "10.0.0.5:8420"),
        ("ray", []),
        ("ray.address", "10.0.0.5"),
        ("ray.nodes", "some"),
        ("ray.adress", "auto"),
        ("aws", None),
        ("aws.region", ""),
        ("aws.image", "my-image"),
        ("aws.subnets", []),
        ("aws.subnets", ["sg-0a"]),
        ("aws.security_groups", "sg-0c"),
        ("aws.head", "http://10.0.0.5"),
        ("aws.setup", "x" * 8001),
        ("aws.tags", ["team"]),
        ("aws.tags", {"boa:token": "mine"}),
        ("aws.tags", {"cost centre": "7"}),
        ("aws.machines", {}),
        ("aws.machines.T4.instance_types", []),
        ("aws.machines.T4.spot", "yes"),
        ("kubernetes", []),
        ("kubernetes.nodes", "some"),
        ("kubernetes.namespace", "Boa"),
        ("kubernetes.owner", ""),
        ("kubernetes.owner", "x" * 41),
        ("kubernetes.node_label", "two words"),
        ("kubernetes.image", "two words"),
        ("kubernetes.pod_template", ["spec"]),
        ("kubernetes.placed_s", 0),
        ("kubernetes.ready_s", -1),
        ("kubernetes.karpenter.node_class.kind", ""),
        ("kubernetes.karpenter.machines", {}),
        ("kubernetes.karpenter.machines.T4.capacity", "cheap"),
        ("kubernetes.karpenter.machines.T4.instance_types", []),
        ("kubernetes.karpenter.labels", {"a b": "c"}),
        ("kubernetes.karpenter.taints", [{"key": "gpus", "effect": "None"}]),
        ("kubernetes.autoscaler.evict_others", "yes"),
        ("classes", []),
        ("classes", {"a b": {}}),
        ("classes.bert", {"profile": "bert.json", "catalogue": "bert"}),
        ("classes.bert.catalog", "bert"),
        ("classes.bert.profile", ""),
        ("classes.bert.arrivals_per_hour", -1),
        ("classes.bert.measured_weight", -1),
        ("budget", 3),
    ],
)
def test_reader_and_schema_refuse_the_same(tmp_path: Path, path: str, value: Any) -> None:
    (tmp_path / "bert.json").write_text(json.dumps(profile_document(PROFILE)))
    document = changed(path, value)
    assert not fits(document)
    file = written(tmp_path, document)
    with pytest.raises(InputError) as caught:
        load(file)
    assert caught.value.field.startswith(f"{file}: {path}"), "names the file and the field"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("aws.machines.H100", {"instance_types": ["p5.48xlarge"]}, "one of the gpu_types: T4, A10"),
        ("aws.machines", {"T4": {"instance_types": ["g4dn.xlarge"]}}, "A100 has none"),
    ],
)
def test_what_only_the_reader_sees_is_named_too(
    tmp_path: Path, path: str, value: Any, said: str
) -> None:
    (tmp_path / "bert.json").write_text(json.dumps(profile_document(PROFILE)))
    with pytest.raises(InputError, match=said):
        load(written(tmp_path, changed(path, value)))


def test_the_policy_is_one_that_the_service_takes(file: Path) -> None:
    assert load_config(None, {"policy": "sia-autoscale"}, catalogue).policy == "sia-autoscale"
    with pytest.raises(InputError, match=r"parts: got 'vision, others'; expected policy boa"):
        load_config(file, {"policy": "sia-autoscale"}, catalogue)
    with pytest.raises(InputError, match=r"^policy: got 'pollux'; expected one of boa, pollux-a"):
        load_config(file, {"policy": "pollux"}, catalogue)


def test_a_wrong_flag_is_not_blamed_on_the_file(file: Path) -> None:
    with pytest.raises(InputError, match=r"^port: got 70000"):
        load(file, port=70_000)
    with pytest.raises(InputError, match=r"^budget: unknown field, perhaps budget_per_hour"):
        load(file, budget=3)


def test_a_model_that_nobody_measured_and_a_broken_profile_are_named(tmp_path: Path) -> None:
    unknown = written(tmp_path, {**CONFIG, "classes": {"a": {"catalogue": "gpt9"}}})
    with pytest.raises(InputError, match=r"classes\.a\.catalogue: got 'gpt9'; .* T4, A100"):
        load(unknown)
    (tmp_path / "bert.json").write_text('{"class": "bert"}')
    broken = written(tmp_path, CONFIG)
    with pytest.raises(InputError, match=r"bert\.json: work: missing"):
        load(broken)


def test_those_who_share_a_budget_need_a_policy_that_follows_one(tmp_path: Path) -> None:
    file = tmp_path / "boa.yaml"
    file.write_text("{policy: sia-autoscale, target_efficiency: 0.5, parts: {vision: {}}}")
    with pytest.raises(InputError, match="parts: got 'vision'; expected policy boa"):
        load(file)


def test_more_by_right_than_the_budget_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "boa.yaml"
    file.write_text("{budget_per_hour: 4, parts: {vision: {budget_per_hour: 5}}}")
    with pytest.raises(InputError, match="parts: they have 5 USD per hour by right"):
        load(file)
