"""How a service is set up: `boa.yaml`, flags over it, and defaults that need neither."""

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from boa.errors import FileError, InputError
from boa.formats import checks, providers
from boa.formats.fields import check_version, class_name, fields, printable
from boa.formats.files import read_document
from boa.formats.profile import load_profile
from boa.model.policies import live_policies
from boa.model.profile import ClassProfile
from boa.model.provider_settings import CLOUDS_OF
from boa.model.service import ClassPrior, ServiceConfig
from boa.model.workload import GpuType
from boa.units import GpuName, UsdPerHour

Catalogue: TypeAlias = Callable[[str, Mapping[GpuName, GpuType]], ClassProfile | None]
"""The profile of a known model on these GPU types; None of one that nobody has measured."""

DEFAULT_BUDGET: UsdPerHour = 4.0
SLOT = GpuType(name="slot", price=1.0, gpus_per_node=4)
"""What a machine without GPUs has instead: jobs are counted, nothing is reserved."""
SLOT_NODES = 4
MAX_GPUS_PER_NODE = 1024
MAX_NODES = 100_000
MAX_TEXT = 2000
MAX_PORT = 65_535
MAX_WARM_PARENTS = 100
WEEK_S, DAY_S = 604_800.0, 86_400.0
PRIOR_WEIGHTS: Mapping[str, float] = {"measured_weight": 1e12, "arrivals_weight_h": 1e6}
"""How sure a prior may be of itself, at the most."""
NUMBERS: Mapping[str, Mapping[str, float]] = {
    "speed": {"above": 0, "most": 1e6},
    "round_s": {"above": 0, "most": DAY_S},
    "replan_s": {"above": 0, "most": WEEK_S},
    "keep_warm_s": {"least": 0, "most": WEEK_S},
    "pacing_h": {"above": 0, "most": 8760},
    "refused_s": {"least": 0, "most": DAY_S},
    "backoff_s": {"least": 0, "most": DAY_S},
}
"""Settings that are called the same in `ServiceConfig`, and what each may be."""
URL = r"^https?://[^\s/]+(/\S*)?$"
MAX_LOG_MB = 102_400.0
NAMES = ("policy", "engine", "cloud", "host")
LOCAL = ("provision_s", "release_s")
_FIELDS = (
    "version",
    "budget_per_hour",
    "max_spend_per_hour",
    "target_efficiency",
    "gpu_types",
    "data_dir",
    "db",
    "port",
    "url",
    "ray",
    "aws",
    "warm_parents",
    "log_mb",
    "local",
    "classes",
    *NAMES,
    *NUMBERS,
)
_PROFILE_FIELDS = ("profile", "catalogue")


def load_config(
    path: str | Path | None, overrides: Mapping[str, Any], catalogue: Catalogue
) -> ServiceConfig:
    """What a service is to do. `overrides` go by the file's names and win; None: not given."""
    given = {name: value for name, value in overrides.items() if value is not None}
    document = None if path is None else read_document(path)
    home = Path() if path is None else Path(path).resolve().parent
    try:
        written = _placed({} if document is None else document, home)
        return _config({**written, **_placed(given, Path())}, home, catalogue)
    except FileError:
        raise
    except InputError as wrong:
        if path is None or re.split(r"[.\[]", wrong.field)[0] in given:
            raise
        raise wrong.inside(str(path)) from None


def _placed(document: Any, home: Path) -> Mapping[str, Any]:
    """With a data folder that no longer depends on where it was said."""
    given = fields(document, "", optional=_FIELDS)
    if "data_dir" not in given:
        return given
    folder = given["data_dir"]
    if not isinstance(folder, str | Path) or not str(folder).strip() or "\0" in str(folder):
        raise InputError("data_dir", folder, "a folder")
    return {**given, "data_dir": _absolute(home / os.path.expanduser(folder), "data_dir")}


def _absolute(folder: Path, name: str) -> Path:
    try:
        return Path(os.path.abspath(folder))
    except FileNotFoundError:
        problem = "is relative to the present folder, which was deleted"
        raise FileError(f"{name} {folder}", problem, "an absolute path") from None


def _config(top: Mapping[str, Any], home: Path, catalogue: Catalogue) -> ServiceConfig:
    check_version(top, "")
    settings: dict[str, Any] = {
        name: checks.number(top[name], name, **bounds)
        for name, bounds in NUMBERS.items()
        if name in top
    }
    settings |= {name: printable(top[name], name) for name in NAMES if name in top}
    if "policy" in settings:
        checks.choice(settings["policy"], "policy", live_policies())
    settings |= _pair(settings)
    settings |= _local(top.get("local", {}))
    if "port" in top:
        settings["port"] = checks.whole(top["port"], "port", least=0, most=MAX_PORT)
    if "warm_parents" in top:
        settings["warm_parents"] = checks.whole(
            top["warm_parents"], "warm_parents", least=0, most=MAX_WARM_PARENTS
        )
    if "log_mb" in top:
        size = checks.number(top["log_mb"], "log_mb", above=0, most=MAX_LOG_MB)
        settings["log_bytes"] = max(1, round(size * 1024**2))
    types, most = _offered(top)
    settings |= _elsewhere(top, types)
    folder = top.get("data_dir") or default_data_dir()
    return ServiceConfig(
        budget=checks.number(
            top.get("budget_per_hour", DEFAULT_BUDGET), "budget_per_hour", above=0
        ),
        max_spend=_optional(top, "max_spend_per_hour", above=0),
        target_efficiency=_optional(top, "target_efficiency", above=0, most=1),
        gpu_types=types,
        unpriced=_unpriced(top.get("gpu_types", {})),
        max_nodes=most,
        data_dir=folder,
        db=_db(top["db"]) if "db" in top else f"sqlite:///{folder / 'boa.db'}",
        priors=_priors(top.get("classes", {}), types, home, catalogue),
        **settings,
    )


def _optional(given: Mapping[str, Any], name: str, path: str = "", **bounds: float) -> float | None:
    value = given.get(name)
    return None if value is None else checks.number(value, checks.joined(path, name), **bounds)


def _local(value: Any) -> dict[str, float]:
    given = fields(value, "local", optional=LOCAL)
    return {
        name: checks.number(given[name], f"local.{name}", least=0, most=WEEK_S) for name in given
    }


def _pair(given: Mapping[str, Any]) -> dict[str, Any]:
    """An engine, and a cloud whose nodes it can use."""
    engine = given.get("engine", "local")
    if engine not in CLOUDS_OF:
        raise InputError("engine", engine, f"one of {', '.join(CLOUDS_OF)}")
    clouds = CLOUDS_OF[engine]
    cloud = given.get("cloud", clouds[0])
    if cloud not in clouds:
        raise InputError("cloud", cloud, f"with engine {engine}: {' or '.join(clouds)}")
    return {"engine": engine, "cloud": cloud}


def _elsewhere(top: Mapping[str, Any], types: Mapping[GpuName, GpuType]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if "url" in top:
        settings["url"] = _url(top["url"])
    if "ray" in top:
        settings["ray"] = providers.ray(top["ray"])
    if "aws" in top:
        settings["aws"] = providers.aws(top["aws"], list(types))
    return settings


def _url(value: Any) -> str:
    if not re.fullmatch(URL, printable(value, "url", MAX_TEXT)):
        raise InputError("url", value, "where jobs reach the service: http://HOST:PORT")
    return str(value).rstrip("/")


def _unpriced(value: Any) -> frozenset[GpuName]:
    said = value if isinstance(value, dict) else {}
    return frozenset(name for name, given in said.items() if "price" not in (given or {}))


def _offered(top: Mapping[str, Any]) -> tuple[dict[GpuName, GpuType], dict[GpuName, int]]:
    if "gpu_types" in top:
        return _gpu_types(top["gpu_types"])
    if top.get("engine", "local") != "local":
        expected = (
            "the GPU types of its nodes, such as {T4: {price: 0.5, gpus_per_node: 4, max_nodes: 8}}"
        )
        raise InputError("gpu_types", None, f"with engine {top['engine']}: {expected}")
    return machine()


def _gpu_types(value: Any) -> tuple[dict[GpuName, GpuType], dict[GpuName, int]]:
    types: dict[GpuName, GpuType] = {}
    most: dict[GpuName, int] = {}
    for name, said in checks.named(value, "gpu_types").items():
        path = f"gpu_types.{printable(name, 'gpu_types')}"
        given = fields(
            {} if said is None else said, path, optional=("price", "gpus_per_node", "max_nodes")
        )
        types[name] = GpuType(
            name=name,
            price=checks.number(given.get("price", 1.0), f"{path}.price", above=0),
            gpus_per_node=checks.whole(
                given.get("gpus_per_node", 1), f"{path}.gpus_per_node", most=MAX_GPUS_PER_NODE
            ),
        )
        if given.get("max_nodes") is not None:
            most[name] = checks.whole(given["max_nodes"], f"{path}.max_nodes", most=MAX_NODES)
    return types, most


def _db(value: Any) -> str:
    if "://" not in printable(value, "db", MAX_TEXT):
        expected = (
            "a database URL, such as sqlite:////var/lib/boa.db or postgresql+psycopg://HOST/boa"
        )
        raise InputError("db", value, expected)
    return str(value)


def default_data_dir() -> Path:
    """$BOA_HOME, or else where the XDG base directories put state."""
    if chosen := os.environ.get("BOA_HOME"):
        return _absolute(Path(os.path.expanduser(chosen)), "BOA_HOME")
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification has relative paths ignored.
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "boa"


def _priors(
    value: Any, types: Mapping[GpuName, GpuType], home: Path, catalogue: Catalogue
) -> dict[str, ClassPrior]:
    if not isinstance(value, dict):
        raise InputError("classes", value, "a mapping from class names to what is known of them")
    return {
        class_name(name, "classes"): _prior(name, said, types, home, catalogue)
        for name, said in value.items()
    }


def _prior(
    name: str, value: Any, types: Mapping[GpuName, GpuType], home: Path, catalogue: Catalogue
) -> ClassPrior:
    path = f"classes.{name}"
    optional = (*_PROFILE_FIELDS, "arrivals_per_hour", *PRIOR_WEIGHTS)
    given = fields({} if value is None else value, path, optional=optional)
    weights = {
        weight: checks.number(given[weight], f"{path}.{weight}", least=0, most=most)
        for weight, most in PRIOR_WEIGHTS.items()
        if weight in given
    }
    return ClassPrior(
        name=name,
        profile=_profile(given, path, types, home, catalogue),
        arrivals_per_hour=_optional(given, "arrivals_per_hour", path, least=0),
        **weights,
    )


def _profile(
    given: Mapping[str, Any],
    path: str,
    types: Mapping[GpuName, GpuType],
    home: Path,
    catalogue: Catalogue,
) -> ClassProfile | None:
    if all(name in given for name in _PROFILE_FIELDS):
        raise InputError(path, dict(given), "only one of profile and catalogue")
    if "profile" in given:
        file = home / os.path.expanduser(printable(given["profile"], f"{path}.profile", MAX_TEXT))
        try:
            return load_profile(file)
        except FileError:
            raise
        except InputError as wrong:
            raise FileError(str(file), f"{wrong.field}: {wrong.problem}", wrong.expected) from None
    if "catalogue" not in given:
        return None
    model = printable(given["catalogue"], f"{path}.catalogue")
    found = catalogue(model, types)
    if found is None:
        on = f"a model that the catalogue has measured on one of {', '.join(types)}"
        raise InputError(f"{path}.catalogue", model, on)
    return found


def machine() -> tuple[dict[GpuName, GpuType], dict[GpuName, int]]:
    """This machine as the one node that there is; without GPUs, a few nodes of slots."""
    names = _installed_gpus()
    if not names:
        return {SLOT.name: SLOT}, {SLOT.name: SLOT_NODES}
    name = short_name(names[0])
    # Of a machine with several kinds only the first is used: a file can name them all.
    count = sum(short_name(other) == name for other in names)
    return {name: GpuType(name=name, gpus_per_node=count)}, {name: 1}


def _installed_gpus() -> list[str]:
    command = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return []
    return [line.strip() for line in found.stdout.splitlines() if line.strip()]


def short_name(product: str) -> GpuName:
    """What a GPU is called: `NVIDIA A100-SXM4-80GB` is an A100."""
    noise = r"NVIDIA|Tesla|GeForce|PCIe|SXM\d*|HBM\d*e?|NVL|\d+GB"
    words = [word for word in re.split(r"[\s-]+", product) if not re.fullmatch(noise, word)]
    return "".join(words) or product
