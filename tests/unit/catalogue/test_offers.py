"""The table of instances that clouds rent out: every row sane, and found."""

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boa.catalogue.cloud_offers import (
    CLOUDS,
    CloudOffer,
    find,
    load,
    offers,
    refreshed_file,
    shipped,
    text_of,
)
from boa.catalogue.offers import OFFERS
from boa.catalogue.refreshing import merged
from boa.errors import FileError, InputError

GPUS = {"T4", "V100", "A10", "A10G", "L4", "L40S", "A100", "H100", "H200", "B200"}
USUAL_MEMORY = {"T4": {16}, "V100": {16, 32}, "A100": {40, 80}, "L4": {24}, "H200": {141}}


def offer(
    cloud: str = "aws", name: str = "p9.huge", region: str = "r1", **fields: object
) -> CloudOffer:
    known: dict[str, object] = {
        "cloud": cloud,
        "instance_type": name,
        "gpu": "A100",
        "gpus": 8,
        "gpu_memory_gb": 40.0,
        "vcpus": 96,
        "memory_gb": 1152.0,
        "region": region,
        "price_per_hour": 24.0,
        "spot_price_per_hour": 8.0,
        "source": "a test",
        "date": "2026-01-02",
    }
    return CloudOffer(**known | fields)  # type: ignore[arg-type]


prices = st.none() | st.floats(0.01, 500)
some = st.builds(
    offer,
    cloud=st.sampled_from(CLOUDS),
    name=st.sampled_from("abc"),
    region=st.sampled_from(["r1", "r2"]),
    price_per_hour=prices,
    spot_price_per_hour=prices,
    gpus=st.integers(1, 16),
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BOA_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("row", shipped(), ids=lambda row: row.instance_type)
def test_every_row_is_sane(row: CloudOffer) -> None:
    listed, spot = row.price_per_hour, row.spot_price_per_hour
    assert 1 <= row.gpus <= 16
    assert row.gpu_memory_gb in USUAL_MEMORY.get(row.gpu, {row.gpu_memory_gb})
    assert row.vcpus >= 4 * row.gpus or row.gpus == 16
    assert date(2023, 1, 1) <= date.fromisoformat(row.date) <= date(2026, 11, 15)
    assert row.price_per_gpu_hour is None or 0.3 < row.price_per_gpu_hour < 20
    assert spot is None or listed is None or spot < listed


def test_no_row_is_there_twice() -> None:
    assert len({row.key for row in shipped()}) == len(shipped())


def test_the_table_covers_the_clouds_and_the_gpus_that_people_ask_for() -> None:
    assert {row.cloud for row in shipped()} == set(CLOUDS)
    assert {row.gpu for row in shipped()} >= GPUS
    assert {row.gpu for row in shipped()} & set(OFFERS) == {
        "T4", "V100", "A100", "H200", "QuadroRTX6000",
    }  # fmt: skip


def test_more_of_the_same_gpus_never_cost_less() -> None:
    families: dict[tuple[str, str, float], list[CloudOffer]] = {}
    for row in shipped():
        families.setdefault((row.cloud, row.gpu, row.gpu_memory_gb), []).append(row)
    for rows in families.values():
        cheapest = [
            min(r.price_per_hour for r in rows if r.gpus == n and r.price_per_hour)
            for n in sorted({r.gpus for r in rows if r.price_per_hour})
        ]
        assert cheapest == sorted(cheapest)


def test_the_prices_that_planning_uses_are_those_of_the_same_machines() -> None:
    for gpu, name in (("T4", "NC64as_T4_v3"), ("V100", "ND40rs_v2"), ("A100", "ND96asr_v4")):
        row = find("azure", f"Standard_{name}", "eastus")
        assert row is not None
        assert row.gpu == gpu
        assert row.price_per_gpu_hour == pytest.approx(OFFERS[gpu].price, rel=1e-3)


def test_a_machine_is_found_with_its_price_per_gpu() -> None:
    row = find("aws", "p4d.24xlarge", "us-east-1")
    assert row is not None
    assert (row.gpu, row.gpus, row.gpu_memory_gb) == ("A100", 8, 40)
    assert row.price_per_hour == 21.957642
    assert row.price_per_gpu_hour == pytest.approx(2.74470525)
    assert find("aws", "p4d.24xlarge") == row


def test_the_price_of_one_region_is_none_of_another() -> None:
    row = find("aws", "p4d.24xlarge", "eu-west-1")
    assert row is not None
    assert (row.gpus, row.region) == (8, "eu-west-1")
    assert row.price_per_hour is row.price_per_gpu_hour is row.spot_price_per_hour is None


def test_one_price_for_all_regions_holds_in_each() -> None:
    row = find("lambda", "gpu_1x_a10", "us-west-1")
    assert row is not None
    assert row.price_per_hour == 1.29


def test_what_nobody_rents_out_is_not_found() -> None:
    assert find("aws", "p99.huge") is None
    assert find("gcp", "p4d.24xlarge") is None


def test_what_was_refreshed_wins_and_the_rest_stays(home: Path) -> None:
    fresher = offer(name="p4d.24xlarge", region="us-east-1", price_per_hour=7.0)
    (home / "offers.json").write_text(text_of([fresher, offer()]))
    assert refreshed_file() == home / "offers.json"
    assert find("aws", "p4d.24xlarge", "us-east-1") == fresher
    assert find("aws", "p9.huge", "r1") == offer()
    assert len(offers()) == len(shipped()) + 1


@settings(max_examples=30)
@given(rows=st.lists(some))
def test_rows_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[CloudOffer]
) -> None:
    path = tmp_path_factory.mktemp("offers") / "offers.json"
    path.write_text(text_of(rows))
    assert list(load(path)) == rows


@settings(max_examples=50)
@given(old=st.lists(some, unique_by=lambda o: o.key), new=st.lists(some, unique_by=lambda o: o.key))
def test_fresh_rows_replace_all_of_their_region_and_none_of_another(
    old: list[CloudOffer], new: list[CloudOffer]
) -> None:
    rows = merged(old, new)
    places = {(row.cloud, row.region) for row in new}
    assert [row for row in rows if (row.cloud, row.region) in places] == new
    assert set(rows) - set(new) == {o for o in old if (o.cloud, o.region) not in places}


def test_no_file_means_no_rows(tmp_path: Path) -> None:
    assert load(tmp_path / "none.json") == ()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"offers": [{"cloud": "aws"}]}', '{"offers": 3}', '{"rows": []}']
)
def test_a_file_of_something_else_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "offers.json"
    path.write_text(text)
    with pytest.raises(FileError, match=r"offers\.json: is not a file of offers"):
        load(path)


def test_a_file_that_no_table_can_be_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "offers.json"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(FileError, match=r"offers\.json: is too large") as wrong:
        load(path)
    assert str(wrong.value).count(str(path)) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cloud", "moon"),
        ("gpu", " "),
        ("gpus", 0),
        ("price_per_hour", 0.0),
        ("price_per_hour", float("nan")),
        ("spot_price_per_hour", float("inf")),
        ("date", "yesterday"),
    ],
)
def test_a_row_that_cannot_be_is_refused_by_field(
    tmp_path: Path, field: str, value: object
) -> None:
    with pytest.raises(InputError) as wrong:
        offer(**{"cloud": "aws", field: value})  # type: ignore[arg-type]
    assert wrong.value.field == field
    path = tmp_path / "offers.json"
    path.write_text(json.dumps({"offers": [offer().document() | {field: value}]}))
    with pytest.raises(InputError, match=rf"offers\.json: {field}"):
        load(path)
