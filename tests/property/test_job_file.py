"""Job specs and profiles survive the way through JSON; no document breaks their readers."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from boa.errors import InputError
from boa.formats.job import LAUNCHERS, job_document, read_job_spec
from boa.formats.profile import profile_document, read_profile
from boa.formats.service import load_config
from boa.model.job import GpuLimits, JobSpec, SecretUse
from boa.model.profile import ClassProfile

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
NAMES = st.text(
    st.characters(categories=["Lu", "Ll", "Nd", "Po", "Sm"]), min_size=1, max_size=200
).filter(str.isprintable)
CLASSES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,40}", fullmatch=True)
FOLDERS = st.just("") | TEXT.map(lambda text: f"/{text}")
POSITIVE = st.floats(1e-12, 1e15)


@st.composite
def gpu_limits(draw: st.DrawFn) -> GpuLimits:
    least = draw(st.integers(1, 1024))
    return GpuLimits(
        min=least,
        max=draw(st.integers(least, 1024)),
        types=tuple(draw(st.lists(NAMES, max_size=3, unique=True))),
    )


@st.composite
def job_specs(draw: st.DrawFn) -> JobSpec:
    modules = st.from_regex(r"[a-z_]{1,8}(\.[a-zA-Z_0-9]{0,8}x)?", fullmatch=True).filter(
        lambda name: all(part.isidentifier() for part in name.split("."))
    )
    env_names = st.from_regex(r"[a-z_][A-Za-z0-9_]{0,20}", fullmatch=True)
    return JobSpec(
        job_class=draw(CLASSES),
        run=(draw(TEXT.filter(str.strip)), *draw(st.lists(TEXT, max_size=5))),
        name=draw(st.just("") | NAMES),
        env=draw(st.dictionaries(env_names, TEXT, max_size=4)),
        secrets=tuple(
            SecretUse(name, f"OF_{name}" if draw(st.booleans()) else f"X_{number}")
            for number, name in enumerate(draw(st.lists(env_names, max_size=4, unique=True)))
        ),
        workdir=draw(FOLDERS),
        gpus=draw(gpu_limits()),
        launcher=draw(st.sampled_from(LAUNCHERS)),
        epochs=draw(st.integers(1, 10_000)),
        total_work=draw(st.none() | POSITIVE),
        checkpoint_dir=draw(FOLDERS),
        preload=draw(st.none() | st.lists(modules, max_size=20).map(tuple)),
        grace_s=draw(st.just(0.0) | st.floats(1e-9, 3600)),
        retries=draw(st.integers(0, 1000)),
        weight=draw(POSITIVE),
    )


@given(spec=job_specs())
def test_a_spec_reads_back_as_it_was_written(spec: JobSpec) -> None:
    assert read_job_spec(json.loads(json.dumps(job_document(spec)))) == spec


@st.composite
def profiles(draw: st.DrawFn) -> ClassProfile:
    work = tuple(draw(st.lists(POSITIVE, min_size=1, max_size=4)))
    rate = st.just(0.0) | POSITIVE
    rates = {}
    for gpu in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        widest = draw(st.integers(1, 4))
        table = np.zeros((len(work), 2, widest + 1))
        size = len(work) * 2 * widest
        drawn = draw(st.lists(rate, min_size=size, max_size=size))
        table[:, :, 1:] = np.reshape(drawn, (len(work), 2, widest))
        rates[gpu] = table
    rescale = draw(st.just(0.0) | POSITIVE)
    return ClassProfile(name=draw(CLASSES), work=work, rates=rates, rescale_s=rescale)


@given(profile=profiles())
def test_a_profile_reads_back_as_it_was_written(profile: ClassProfile) -> None:
    read = read_profile(json.loads(json.dumps(profile_document(profile))))
    assert (read.name, read.work, read.rescale_s) == (profile.name, profile.work, profile.rescale_s)
    assert list(read.rates) == list(profile.rates)
    for gpu, table in profile.rates.items():
        assert np.array_equal(read.rates[gpu], table)


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
JOB_FIELDS = st.sampled_from([*job_document(JobSpec(job_class="a", run=("b",))), "name", "x"])
PROFILE_FIELDS = st.sampled_from(["class", "work", "rates", "rescale_s", "version"])
CONFIG_FIELDS = st.sampled_from(
    ["gpu_types", "classes", "local", "port", "db", "data_dir", "speed"]
)


def error_of(read: Callable[[], object]) -> InputError | None:
    """What a reader has against a document; any other exception fails the test."""
    try:
        read()
    except InputError as wrong:
        return wrong
    return None


def is_clear(wrong: InputError | None) -> bool:
    return wrong is None or bool(wrong.field and wrong.expected and len(str(wrong)) < 600)


@given(change=st.dictionaries(JOB_FIELDS, VALUES, max_size=3))
def test_any_document_is_a_spec_or_one_clear_error(change: dict[str, Any]) -> None:
    document = {"class": "a", "run": "true", **change}
    wrong = error_of(lambda: read_job_spec(document))
    assert is_clear(wrong)
    if wrong is None:
        spec = read_job_spec(document)
        assert read_job_spec(job_document(spec)) == spec


@given(change=st.dictionaries(PROFILE_FIELDS, VALUES, max_size=3))
def test_any_document_is_a_profile_or_one_clear_error(change: dict[str, Any]) -> None:
    rates = {"T4": {"one_node": [[1.0]], "across": [[0.0]]}}
    document = {"class": "a", "work": [1.0], "rates": rates, **change}
    assert is_clear(error_of(lambda: read_profile(document)))


@given(change=st.dictionaries(CONFIG_FIELDS, VALUES, max_size=3))
def test_any_flags_are_a_config_or_one_clear_error(change: dict[str, Any]) -> None:
    flags = {"gpu_types": {"T4": {}}, **change}
    assert is_clear(error_of(lambda: load_config(None, flags, lambda model, types: None)))
