"""How a service is set up: `boa.yaml`, flags over it, and defaults that need neither."""

import dataclasses
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from boa.errors import FileError, InputError
from boa.formats.containers import as_given, mapping_of, object_of
from boa.formats.files import read_document
from boa.formats.machine import machine
from boa.formats.parts import CLASS, LINE, VERSION_1, printable
from boa.formats.profile import load_profile
from boa.formats.providers import AWS, RAY
from boa.formats.shapes import (
    Field,
    Format,
    Shape,
    choice,
    nullable,
    number,
    or_empty,
    text,
    then,
    whole,
)
from boa.model.profile import ClassProfile
from boa.model.provider_settings import CLOUDS_OF, AwsSettings
from boa.model.service import ClassPrior, ServiceConfig
from boa.model.workload import GpuType
from boa.units import GpuName, UsdPerHour

Catalogue: TypeAlias = Callable[[str, Mapping[GpuName, GpuType]], ClassProfile | None]
"""The profile of a known model on these GPU types; None of one that nobody has measured."""
Values: TypeAlias = dict[str, Any]

DEFAULT_BUDGET: UsdPerHour = 4.0
MAX_GPUS_PER_NODE = 1024
MAX_NODES = 100_000
MAX_TEXT = 2000
MAX_PORT = 65_535
MAX_WARM_PARENTS = 100
MAX_LOG_MB = 102_400.0
WEEK_S, DAY_S, YEAR_H = 604_800.0, 86_400.0, 8760.0
PRIOR_WEIGHTS: Mapping[str, float] = {"measured_weight": 1e12, "arrivals_weight_h": 1e6}
"""How sure a prior may be of itself, at the most."""
_CLOUDS = list(dict.fromkeys(cloud for clouds in CLOUDS_OF.values() for cloud in clouds))
_DEFAULTS: Values = {part.name: part.default for part in dataclasses.fields(ServiceConfig)}
_PRIOR: Values = {part.name: part.default for part in dataclasses.fields(ClassPrior)}
_PATH = r"^(?=[\s\S]*\S)[^\x00]*$"

_GPU_TYPE = or_empty(
    object_of(
        Field("price", number(above=0), "USD per GPU and hour.", otherwise="1; of AWS, its own"),
        Field("gpus_per_node", whole(most=MAX_GPUS_PER_NODE), "GPUs on one node.", default=1),
        Field(
            "max_nodes",
            nullable(whole(most=MAX_NODES)),
            "At most so many nodes.",
            otherwise="no limit",
        ),
        make=as_given,
    )
)
_URL = text(
    "where jobs reach the service: http://HOST:PORT",
    pattern=r"^https?://[^\s/]+(/\S*)?$",
    most=MAX_TEXT,
    fits=str.isprintable,
    words="`http://HOST:PORT`",
)
_DB = text(
    "a database URL, such as sqlite:////var/lib/boa.db or postgresql+psycopg://HOST/boa",
    pattern=r"^[^\x00-\x1f\x7f]*://[^\x00-\x1f\x7f]*$",
    most=MAX_TEXT,
    fits=str.isprintable,
    words="URL",
)
_CLASS_PRIOR = or_empty(
    object_of(
        Field(
            "profile",
            printable(MAX_TEXT),
            "A profile file (`boa schema profile`), relative to this one.",
            otherwise="none",
        ),
        Field(
            "catalogue",
            LINE,
            "Or a model of the catalogue, on the GPU types that it was measured on.",
            otherwise="none",
        ),
        Field(
            "arrivals_per_hour",
            nullable(number(least=0)),
            "Jobs that are expected per hour.",
            otherwise="not known",
        ),
        Field(
            "arrivals_weight_h",
            number(least=0, most=PRIOR_WEIGHTS["arrivals_weight_h"]),
            "How many hours of history that rate is worth.",
            default=_PRIOR["arrivals_weight_h"],
        ),
        Field(
            "measured_weight",
            number(least=0, most=PRIOR_WEIGHTS["measured_weight"]),
            "How many reports the profile is worth at every width; 0: the first report "
            "overrules it.",
            default=_PRIOR["measured_weight"],
        ),
        make=as_given,
        at_most_one=("profile", "catalogue"),
    )
)
_LOCAL = object_of(
    Field(
        "provision_s",
        number(least=0, most=WEEK_S),
        "From renting a node until jobs can start on it.",
        default=_DEFAULTS["provision_s"],
    ),
    Field(
        "release_s",
        number(least=0, most=WEEK_S),
        "How long a node is charged for after it was given back.",
        default=_DEFAULTS["release_s"],
    ),
    make=as_given,
)


def _log_bytes(megabytes: float) -> int:
    return max(1, round(megabytes * 1024**2))


def _setting(name: str, shape: Shape[Any], meaning: str) -> Field:
    """A field that is called the same in `ServiceConfig`, which has its default."""
    return Field(name, shape, meaning, default=_DEFAULTS[name])


_MONEY = (
    Field(
        "budget_per_hour",
        number(above=0),
        "Average spend per hour that is steered to.",
        default=DEFAULT_BUDGET,
        to="budget",
    ),
    Field(
        "max_spend_per_hour",
        nullable(number(above=0)),
        "Never spend more than this at any moment.",
        otherwise="no limit",
        to="max_spend",
    ),
)
_PLACES = (
    Field(
        "gpu_types",
        mapping_of(LINE, _GPU_TYPE, called="GPU"),
        "GPU types that can be rented.",
        otherwise="this machine's",
        example={"T4": {"price": 0.526, "gpus_per_node": 4, "max_nodes": 8}},
    ),
    Field("engine", choice(list(CLOUDS_OF)), "What starts jobs.", default=_DEFAULTS["engine"]),
    Field(
        "cloud",
        choice(_CLOUDS),
        "What nodes are rented from; `local` goes with engine `local`, the others with `ray`.",
        otherwise="the engine's first",
    ),
    Field(
        "data_dir",
        text("a folder", pattern=_PATH, words="path, relative to this file"),
        "Where it keeps its database, logs and checkpoints.",
        otherwise="see below",
    ),
    Field(
        "db",
        _DB,
        "SQLAlchemy's URL of the database.",
        otherwise="`sqlite:///DATA_DIR/boa.db`",
    ),
    _setting("host", LINE, "Where it listens. Without `$BOA_TOKEN`, loopback only."),
    _setting("port", whole(least=0, most=MAX_PORT), "Where it listens; 0: any free one."),
    Field(
        "url",
        then(_URL, lambda url: url.rstrip("/")),
        "Where jobs reach the service, if they run on other machines.",
        otherwise="where it listens",
    ),
)
_HABITS = (
    _setting(
        "speed",
        number(above=0, most=1e6),
        "Server seconds per second of the wall: compressed time, for demos and tests.",
    ),
    _setting(
        "round_s",
        number(above=0, most=DAY_S),
        "How often a policy is asked that looks at all jobs at once.",
    ),
    _setting("replan_s", number(above=0, most=WEEK_S), "How often the plan is made anew."),
    _setting(
        "keep_warm_s",
        number(least=0, most=WEEK_S),
        "How long an empty node is kept before it is given back.",
    ),
    _setting(
        "pacing_h",
        number(above=0, most=YEAR_H),
        "Over how many hours an overspent or underspent dollar is made good.",
    ),
    _setting(
        "refused_s",
        number(least=0, most=DAY_S),
        "After the cloud said no: how long until it is asked again.",
    ),
    _setting(
        "backoff_s",
        number(least=0, most=DAY_S),
        "Before the first restart of a job that failed; doubles each time.",
    ),
    _setting(
        "warm_parents",
        whole(least=0, most=MAX_WARM_PARENTS),
        "Processes kept that have imported what jobs import, to fork jobs from, at most; 0: none.",
    ),
    Field(
        "log_mb",
        then(number(above=0, most=MAX_LOG_MB), _log_bytes),
        "MB kept of every worker's log, per attempt.",
        otherwise=f"{_DEFAULTS['log_bytes'] / 1024**2:g}",
        to="log_bytes",
    ),
    Field("local", _LOCAL, "How the local cloud acts."),
    Field("ray", or_empty(RAY), "The Ray cluster, for engine `ray`."),
    Field("aws", AWS, "What nodes are on AWS, for cloud `aws`."),
    Field(
        "classes",
        mapping_of(
            CLASS,
            _CLASS_PRIOR,
            called="CLASS",
            least=0,
            expected="a mapping from class names to what is known of them",
        ),
        "What is believed of classes before their jobs have shown anything.",
        to="priors",
    ),
)


@cache
def config_format(policies: tuple[str, ...] = ()) -> Format[Values]:
    """`boa.yaml`. `policies`: those that the service takes, as its registry has them; none: any
    name, for the service to refuse."""
    return Format(
        "BOA service",
        "How `boa serve` is set up. Flags win over it; every field may be left out. Durations are "
        "seconds, rates per hour, money USD.",
        object_of(
            VERSION_1,
            *_MONEY,
            _setting(
                "policy",
                choice(policies) if policies else LINE,
                "Who decides. All but `boa` scale to `target_efficiency`, and need it.",
            ),
            Field(
                "target_efficiency",
                nullable(number(above=0, most=1)),
                "What policies other than `boa` scale the cluster to, instead of to a budget.",
                otherwise="none",
            ),
            *_PLACES,
            *_HABITS,
            make=as_given,
        ),
    )


def load_config(
    path: str | Path | None,
    overrides: Mapping[str, Any],
    catalogue: Catalogue,
    policies: Sequence[str] = (),
) -> ServiceConfig:
    """What a service is to do. `overrides` go by the file's names and win; None: not given."""
    shape = config_format(tuple(policies)).shape
    given = {name: value for name, value in overrides.items() if value is not None}
    document = None if path is None else read_document(path)
    home = Path() if path is None else Path(path).resolve().parent
    try:
        written = {} if document is None else document
        if not isinstance(written, dict):
            shape.read(written)
        top = {**_placed(written, home), **_placed(given, Path())}
        return _config(shape.read(top), home, catalogue)
    except FileError:
        raise
    except InputError as wrong:
        if path is None or re.split(r"[.\[]", wrong.field)[0] in given:
            raise
        raise wrong.inside(str(path)) from None


def _placed(document: Mapping[str, Any], home: Path) -> Mapping[str, Any]:
    """With a data folder that no longer depends on where it was said."""
    folder = document.get("data_dir")
    if not isinstance(folder, str | Path) or not str(folder).strip() or "\0" in str(folder):
        return document  # the reader words the error
    absolute = _absolute(home / os.path.expanduser(folder), "data_dir")
    return {**document, "data_dir": str(absolute)}


def _absolute(folder: Path, name: str) -> Path:
    try:
        return Path(os.path.abspath(folder))
    except FileNotFoundError:
        problem = "is relative to the present folder, which was deleted"
        raise FileError(f"{name} {folder}", problem, "an absolute path") from None


def _config(values: Values, home: Path, catalogue: Catalogue) -> ServiceConfig:
    values |= values.pop("local", {}) | _pair(values)
    types, most = _offered(values)
    said = values.pop("gpu_types", {})
    if "aws" in values:
        _check_machines(values["aws"], types)
    folder = Path(values.pop("data_dir", None) or default_data_dir())
    priors = values.pop("priors", {})
    return ServiceConfig(
        gpu_types=types,
        unpriced=frozenset(name for name in said if "price" not in said[name]),
        max_nodes=most,
        data_dir=folder,
        db=values.pop("db", None) or f"sqlite:///{folder / 'boa.db'}",
        priors={name: _prior(name, priors[name], types, home, catalogue) for name in priors},
        **values,
    )


def _pair(values: Values) -> dict[str, str]:
    """An engine, and a cloud whose nodes it can use."""
    engine: str = values["engine"]
    clouds = CLOUDS_OF[engine]
    cloud = values.get("cloud", clouds[0])
    if cloud not in clouds:
        raise InputError("cloud", cloud, f"with engine {engine}: {' or '.join(clouds)}")
    return {"cloud": cloud}


def _offered(values: Values) -> tuple[dict[GpuName, GpuType], dict[GpuName, int]]:
    said = values.get("gpu_types")
    if said is None:
        if values["engine"] == "local":
            return machine()
        expected = (
            "the GPU types of its nodes, such as {T4: {price: 0.5, gpus_per_node: 4, max_nodes: 8}}"
        )
        raise InputError("gpu_types", None, f"with engine {values['engine']}: {expected}")
    types = {
        name: GpuType(name=name, price=of.get("price", 1.0), gpus_per_node=of["gpus_per_node"])
        for name, of in said.items()
    }
    most = {name: of["max_nodes"] for name, of in said.items() if of.get("max_nodes") is not None}
    return types, most


def _check_machines(aws: AwsSettings, types: Mapping[GpuName, GpuType]) -> None:
    for name in aws.machines:
        if name not in types:
            raise InputError(
                f"aws.machines.{name}", name, f"one of the gpu_types: {', '.join(types)}"
            )
    missing = [name for name in types if name not in aws.machines]
    if missing:
        expected = f"instance types for every one of the gpu_types ({missing[0]} has none)"
        raise InputError("aws.machines", ", ".join(aws.machines), expected)


def default_data_dir() -> Path:
    """$BOA_HOME, or else where the XDG base directories put state."""
    if chosen := os.environ.get("BOA_HOME"):
        return _absolute(Path(os.path.expanduser(chosen)), "BOA_HOME")
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification has relative paths ignored.
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "boa"


def _prior(
    name: str, given: Values, types: Mapping[GpuName, GpuType], home: Path, catalogue: Catalogue
) -> ClassPrior:
    path = f"classes.{name}"
    profile = None
    if file := given.pop("profile", None):
        profile = _profile(home / os.path.expanduser(file))
    if model := given.pop("catalogue", None):
        profile = catalogue(model, types)
        if profile is None:
            on = f"a model that the catalogue has measured on one of {', '.join(types)}"
            raise InputError(f"{path}.catalogue", model, on)
    return ClassPrior(name=name, profile=profile, **given)


def _profile(file: Path) -> ClassProfile:
    try:
        return load_profile(file)
    except FileError:
        raise
    except InputError as wrong:
        raise FileError(str(file), f"{wrong.field}: {wrong.problem}", wrong.expected) from None
