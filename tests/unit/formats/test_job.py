"""Job files: what they may say, what every error says, and that the schema agrees."""

import json
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from boa.errors import InputError
from boa.formats.job import JOB as FORMAT
from boa.formats.job import job_document, load_job, read_job_spec
from boa.formats.job_places import PLACES
from boa.model.job import After, GpuLimits, JobRecord, JobSpec, SecretUse
from boa.model.priorities import PRIORITIES
from boa.store.codec import job_of, job_row
from documents import JOB


def fits(document: Any) -> bool:
    return bool(Draft202012Validator(FORMAT.schema()).is_valid(document))


def changed(path: str, value: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(JOB))
    *way, last = path.split(".")
    here = document
    for key in way:
        here = here[key]
    here[last] = value
    return document


def test_every_field_arrives_in_the_spec() -> None:
    assert fits(JOB)
    assert read_job_spec(JOB) == JobSpec(
        job_class="resnet18",
        run=("python", "train.py"),
        name="first try",
        env={"SEED": "1"},
        secrets=(SecretUse("HF_TOKEN", "HF_TOKEN"), SecretUse("WANDB", "WANDB_API_KEY")),
        workdir="/work",
        gpus=GpuLimits(min=1, max=16, types=("T4",)),
        launcher="torchrun",
        epochs=30,
        total_work=1.5e6,
        checkpoint_dir="/checkpoints",
        preload=("torch", "torch.nn"),
        grace_s=60.0,
        retries=0,
        weight=2.0,
        after=(After("12"), After("s3", "end")),
        max_time_s=86_400.0,
        max_cost=40.0,
        deadline_s=172_800.0,
        may_wait_s=43_200.0,
        preemptible=True,
        key="nightly-1",
        tags={"project": "cats", "cost_center": "4711"},
    )


def test_what_is_sent_and_what_is_stored_of_a_spec_is_all_of_it() -> None:
    spec = read_job_spec(JOB)
    unsaid = {field.name for field in fields(spec) if getattr(spec, field.name) == _default(field)}
    places = {"package", "environment", "image"}
    assert unsaid == {"priority", *places}, "it goes without a weight; test_job_places.py has these"
    assert read_job_spec(job_document(spec)) == spec
    job = JobRecord(id="1", spec=spec, serial=0, submitted_at=0.0)
    assert job_of(job_row(job)) == job


def test_a_priority_arrives_and_goes_without_a_weight() -> None:
    for priority in PRIORITIES:
        document = {"class": "a", "run": "x", "priority": priority}
        spec = read_job_spec(document)
        assert spec.priority == priority
        assert fits(document)
        assert read_job_spec(job_document(spec)) == spec
        job = JobRecord(id="1", spec=spec, serial=0, submitted_at=0.0)
        assert job_of(job_row(job)) == job
    for wrong in ("high", None, 4):
        said = {"class": "a", "run": "x", "priority": wrong}
        assert not fits(said)
        with pytest.raises(InputError, match="urgent, normal"):
            read_job_spec(said)
    both = {"class": "a", "run": "x", "priority": "urgent", "weight": 2}
    assert not fits(both)
    with pytest.raises(InputError, match="only one of priority and weight"):
        read_job_spec(both)


def test_a_job_that_was_stored_before_there_were_priorities_is_a_normal_one() -> None:
    job = JobRecord(id="1", spec=read_job_spec(JOB), serial=0, submitted_at=0.0)
    row = job_row(job)
    stored = json.loads(row["spec"])
    del stored["priority"]
    assert job_of({**row, "spec": json.dumps(stored)}) == job
    assert job.spec.priority == "normal"


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def test_a_class_and_a_command_are_enough() -> None:
    document = {"class": "a", "run": "python train.py"}
    assert fits(document)
    spec = read_job_spec(document)
    assert spec == JobSpec(job_class="a", run=("sh", "-c", "python train.py"))
    assert fits(job_document(spec))


def test_an_id_that_json_wrote_with_a_point_is_the_same_id() -> None:
    document = {"class": "a", "run": "b", "after": [12.0, {"job": 13.0, "on": "end"}]}
    assert fits(document)
    assert read_job_spec(document).after == (After("12"), After("13", "end"))


def test_a_wide_minimum_lifts_the_maximum_that_was_not_given() -> None:
    assert read_job_spec({"class": "a", "run": "b", "gpus": {"min": 100}}).gpus.max == 100


def test_folders_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    file = tmp_path / "jobs" / "job.yaml"
    file.parent.mkdir()
    file.write_text("class: a\nrun: b\nworkdir: ../code\ncheckpoint_dir: /elsewhere\n")
    spec = load_job(file)
    assert (spec.workdir, spec.checkpoint_dir) == (str(tmp_path / "code"), "/elsewhere")


def test_the_shipped_example_is_a_job(examples: Path) -> None:
    text = (examples / "job.yaml").read_text("utf-8")
    assert fits(yaml.safe_load(text))
    spec = load_job(examples / "job.yaml")
    assert (spec.job_class, spec.workdir) == ("resnet18", str(examples))


def test_the_job_schema_is_a_valid_schema() -> None:
    Draft202012Validator.check_schema(FORMAT.schema())
    elsewhere = {field.name for field in PLACES}  # test_job_places.py
    assert set(FORMAT.schema()["properties"]) == set(JOB) | {"priority"} | elsewhere


WRONG: list[tuple[str, Any]] = [
    ("after", "12"),
    ("after", [0]),
    ("after", ["012"]),
    ("after", [True]),
    ("after", [{"job": 12, "when": "end"}]),
    ("after", ["12", "12"]),
    ("max_time_s", 0),
    ("max_cost", -1),
    ("max_cost", "40"),
    ("deadline_s", False),
    ("may_wait_s", -1),
    ("preemptible", "yes"),
    ("key", ""),
    ("key", "two words"),
    ("tags", ["project"]),
    ("tags", {"project": 4711}),
    ("tags", {"project": "two\nlines"}),
    ("tags", {"two words": "x"}),
    ("tags", {f"kind{n}": "x" for n in range(21)}),
    ("version", 2),
    ("version", True),
    ("name", ""),
    ("name", "x" * 201),
    ("class", ""),
    ("class", "a/b"),
    ("class", "two words"),
    ("class", 3),
    ("class", "x" * 201),
    ("run", ""),
    ("run", "  "),
    ("run", []),
    ("run", [1]),
    ("run", ["python", None]),
    ("run", ["", "x"]),
    ("run", ["x"] * 1001),
    ("run", "a\0b"),
    ("env", ["A=1"]),
    ("env", {"A": 1}),
    ("env", {"A": None}),
    ("env", {"1A": "x"}),
    ("env", {"A-B": "x"}),
    ("env", {"": "x"}),
    ("env", {"BOA_TOKEN": "x"}),
    ("env", {"RANK": "0"}),
    ("env", {"CUDA_VISIBLE_DEVICES": "0"}),
    ("env", {"A": "x" * 10_241}),
    ("env", {"A": "\0"}),
    ("workdir", ""),
    ("checkpoint_dir", 1),
    ("gpus", 4),
    ("gpus", {"count": 4}),
    ("gpus.min", 0),
    ("gpus.max", 1025),
    ("gpus.max", 1.5),
    ("gpus.types", "T4"),
    ("gpus.types", ["T4", "T4"]),
    ("gpus.types", [""]),
    ("launcher", "mpirun"),
    ("launcher", None),
    ("epochs", 0),
    ("epochs", 10_001),
    ("epochs", 1.5),
    ("total_work", 0),
    ("total_work", "many"),
    ("preload", "torch"),
    ("preload", ["torch"] * 21),
    ("preload", [""]),
    ("preload", ["-c"]),
    ("preload", ["os; print()"]),
    ("preload", ["a..b"]),
    ("preload", ["a" * 201]),
    ("grace_s", -1),
    ("grace_s", 3601),
    ("retries", -1),
    ("retries", 1001),
    ("weight", 0),
    ("extra", 1),
]


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_reader_and_schema_refuse_the_same(path: str, value: Any) -> None:
    document = changed(path, value)
    assert not fits(document)
    with pytest.raises(InputError) as caught:
        read_job_spec(document)
    assert caught.value.field.startswith(path)
    assert caught.value.expected


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("workdir", "relative"),
        ("name", "two\nlines"),
        ("run", "x" * 131_069),
        ("gpus", {"min": 3, "max": 2}),
        ("run", ["a\ud800"]),
        ("env", {"A": "\udfff"}),
        ("grace_s", float("nan")),
    ],
)
def test_the_reader_refuses_what_a_schema_cannot_say(path: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{path}"):
        read_job_spec(changed(path, value))


def test_the_longest_command_is_one_that_the_system_can_start() -> None:
    assert read_job_spec(changed("run", "x" * 131_065)).run[2] == "x" * 131_065


def test_an_empty_list_of_gpu_types_is_refused_and_any_is_left_out() -> None:
    wrong = r"gpus\.types: got \[\]; expected a list of 1 to 100 names .*; leave it out for any"
    with pytest.raises(InputError, match=wrong):
        read_job_spec(changed("gpus.types", []))
    assert job_document(read_job_spec({"class": "a", "run": "b"}))["gpus"] == {"min": 1, "max": 64}


def test_limits_that_are_no_mapping_are_told_what_one_is() -> None:
    wrong = r"gpus: got '1-4'; expected a mapping such as \{min: 1, max: 4\}"
    with pytest.raises(InputError, match=wrong):
        read_job_spec(changed("gpus", "1-4"))


def test_a_misspelt_field_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(InputError, match="gpu: unknown field, perhaps gpus is meant; expected one"):
        read_job_spec({**JOB, "gpu": {"min": 1}})
    with pytest.raises(InputError, match=r"gpus\.mim: unknown field, perhaps min is meant"):
        read_job_spec(changed("gpus.mim", 1))


def test_a_number_in_the_environment_is_told_to_go_in_quotes() -> None:
    with pytest.raises(InputError, match=r'env\.SEED: got 1; expected .* in quotes: "1"'):
        read_job_spec(changed("env", {"SEED": 1}))


def test_a_missing_class_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="class: missing"):
        read_job_spec({"run": "b"})
    with pytest.raises(InputError, match="no such file"):
        load_job(tmp_path / "none.yaml")


def test_fields_of_a_spec_inside_another_document_are_named_by_their_path() -> None:
    with pytest.raises(InputError, match=r"^jobs\[0\]\.gpus\.min: got 0"):
        read_job_spec(changed("gpus.min", 0), "jobs[0]")


def test_a_spec_of_more_than_a_megabyte_is_refused() -> None:
    env = {f"V{n}": "x" * 10_000 for n in range(110)}
    with pytest.raises(InputError, match="bytes long; expected at most 1 MB"):
        read_job_spec({**JOB, "env": env})


@pytest.mark.parametrize("document", [{"x" * 10**6: 1}, {**JOB, "env": {"x " * 10**6: ""}}])
def test_an_error_stays_short_whatever_was_sent(document: Any) -> None:
    with pytest.raises(InputError) as caught:
        read_job_spec(document)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("key", ["\ud800", "\x1b[2J", "two\nlines"])
def test_an_error_can_be_written_whatever_a_field_is_called(key: str) -> None:
    for document in ({**JOB, key: 1}, changed("env", {key: "x"})):
        with pytest.raises(InputError) as caught:
            read_job_spec(document)
        assert str(caught.value).isprintable()
        assert str(caught.value).encode()


def test_one_job_cannot_be_waited_for_to_end_in_two_ways() -> None:
    with pytest.raises(InputError, match=r"after\[1\]: got '12'; expected each job once"):
        read_job_spec(changed("after", ["12", {"job": 12, "on": "failure"}]))
