"""Instances with GPUs that clouds rent out, and what they cost: a dated table, or a fresher one.

`cloud_offers.csv` holds facts, each with where it was read and when. Prices age; `refreshing` asks
the clouds themselves and leaves what they say in a file of the user's, whose rows win over ours.
"""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date as Day
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from boa.errors import FileError, InputError
from boa.formats.service import default_data_dir
from boa.units import GpuName, UsdPerHour

CLOUDS = ("aws", "gcp", "azure", "lambda")
REFRESHED = "offers.json"
"""The user's own file, in the data folder."""
ANYWHERE = "any"
"""The region of a cloud whose prices are the same in all of them."""
MAX_BYTES = 16 << 20
PRICES = ("price_per_hour", "spot_price_per_hour")
NUMBERS: Mapping[str, type] = {
    "gpus": int,
    "vcpus": int,
    "gpu_memory_gb": float,
    "memory_gb": float,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudOffer:
    """One instance type in one region."""

    cloud: str
    instance_type: str
    gpu: GpuName
    """As in `catalogue.offers`, whatever its memory: an A100 has 40 or 80 GB."""
    gpus: int
    gpu_memory_gb: float
    """Memory of one GPU, in GB."""
    vcpus: int
    memory_gb: float
    region: str
    price_per_hour: UsdPerHour | None
    """USD per hour for the whole instance on demand; None: not known, or not sold that way."""
    spot_price_per_hour: UsdPerHour | None
    """USD per hour for the whole instance on spot; None: not known, or no such market."""
    source: str
    date: str
    """When the source said so: YYYY-MM-DD."""

    def __post_init__(self) -> None:
        if self.cloud not in CLOUDS:
            raise InputError("cloud", self.cloud, f"one of {', '.join(CLOUDS)}")
        for name in ("instance_type", "gpu", "region", "source"):
            if not getattr(self, name).strip():
                raise InputError(name, getattr(self, name), "some text")
        for name in NUMBERS:
            _positive(name, getattr(self, name))
        for name in PRICES:
            if getattr(self, name) is not None:
                _positive(name, getattr(self, name))
        try:
            Day.fromisoformat(self.date)
        except ValueError:
            raise InputError("date", self.date, "a date such as 2026-02-09") from None

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.cloud, self.instance_type, self.region)

    @property
    def price_per_gpu_hour(self) -> UsdPerHour | None:
        return None if self.price_per_hour is None else self.price_per_hour / self.gpus

    @property
    def spot_price_per_gpu_hour(self) -> UsdPerHour | None:
        spot = self.spot_price_per_hour
        return None if spot is None else spot / self.gpus

    def document(self) -> dict[str, Any]:
        return asdict(self)


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InputError(name, value, "a finite number > 0")


@cache
def shipped() -> tuple[CloudOffer, ...]:
    """The table that comes with the package."""
    table = resources.files("boa.catalogue").joinpath("cloud_offers.csv")
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    return tuple(_row(row) for row in rows)


def refreshed_file() -> Path:
    return default_data_dir() / REFRESHED


def offers(refreshed: Path | None = None) -> tuple[CloudOffer, ...]:
    """Ours, and those of the user's file, which win."""
    fresher = load(refreshed_file() if refreshed is None else refreshed)
    return tuple(({o.key: o for o in shipped()} | {o.key: o for o in fresher}).values())


def find(provider: str, instance_type: str, region: str | None = None) -> CloudOffer | None:
    """The offer of an instance type, or None where it is unknown.

    Where nobody has said what it costs in this region, the answer is the machine without a price:
    that of another region is no price.
    """
    same = [o for o in offers() if (o.cloud, o.instance_type) == (provider, instance_type)]
    here = [o for o in same if region in (None, o.region) or o.region == ANYWHERE]
    if same and not here:
        return replace(same[0], region=str(region), price_per_hour=None, spot_price_per_hour=None)
    return here[0] if here else None


def _row(row: Mapping[str, str]) -> CloudOffer:
    values: dict[str, Any] = dict(row)
    values |= {name: kind(row[name]) for name, kind in NUMBERS.items()}
    values |= {name: float(row[name]) if row[name] else None for name in PRICES}
    return CloudOffer(**values)


def load(path: Path) -> tuple[CloudOffer, ...]:
    """The rows of a file that `text_of` made; none where there is no file."""
    expected = "what `boa offers --refresh` writes; delete it, or refresh anew"
    try:
        if path.stat().st_size > MAX_BYTES:
            raise FileError(str(path), "is too large", expected)
        rows = json.loads(path.read_bytes())["offers"]
        return tuple(CloudOffer(**row) for row in rows)
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise FileError(str(path), problem.strerror or str(problem), "a readable file") from None
    except FileError:
        raise
    except InputError as wrong:
        raise wrong.inside(str(path)) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FileError(str(path), "is not a file of offers", expected) from None


def text_of(rows: Sequence[CloudOffer]) -> str:
    """A file's content, as `load` reads it."""
    return json.dumps({"offers": [row.document() for row in rows]}, indent=1) + "\n"
