"""How a service is set up: `boa.yaml`, flags over it, and defaults that need neither."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from boa.errors import FileError, InputError
from boa.formats.budget_terms import AMOUNTS, average, terms_of
from boa.formats.budgets import shared
from boa.formats.calendar import check_types
from boa.formats.files import read_document
from boa.formats.kubernetes import settled
from boa.formats.machine import machine
from boa.formats.notify import targets_of
from boa.formats.profile import load_profile
from boa.formats.service_fields import CONFIG, DEFAULT_BUDGET, Values
from boa.formats.shapes import Wrong
from boa.model.budgets import Budget
from boa.model.calendar import Calendar
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.profile import ClassProfile
from boa.model.provider_settings import CLOUDS_OF, AwsSettings
from boa.model.service import ClassPrior, ServiceConfig
from boa.model.terms import Terms
from boa.model.workload import GpuType
from boa.units import GpuName

Catalogue: TypeAlias = Callable[[str, Mapping[GpuName, GpuType]], ClassProfile | None]
"""The profile of a known model on these GPU types; None of one that nobody has measured."""
_BY_TERMS = {*AMOUNTS, "until", "rolls_over"}
_PATHS = ("data_dir", "secret_key_file", "token_file", "tls_cert", "tls_key")


def load_config(
    path: str | Path | None,
    overrides: Mapping[str, Any],
    catalogue: Catalogue,
) -> ServiceConfig:
    """Configuration of a service. `overrides` go by the file's names and win; None: not given."""
    shape = CONFIG.shape
    given = {name: value for name, value in overrides.items() if value is not None}
    document = None if path is None else read_document(path)
    home = Path() if path is None else Path(path).resolve().parent
    try:
        written = {} if document is None else document
        if not isinstance(written, dict):
            shape.read(written)
        if "budget_per_hour" in given:  # what a flag says goes
            written = {name: of for name, of in written.items() if name not in _BY_TERMS}
        top = {**_placed(written, home), **_placed(given, Path())}
        values = shape.read(top)
        if values.get("calendar") is not None:
            _check_one_way(values)
            _spread(values, "budget_per_hour" in top)
        return _config(values, home, catalogue)
    except FileError:
        raise
    except InputError as wrong:
        if path is None or re.split(r"[.\[]", wrong.field)[0] in given:
            raise
        raise wrong.inside(str(path)) from None


def _placed(document: Mapping[str, Any], home: Path) -> Mapping[str, Any]:
    """With paths that no longer depend on where they were said."""
    placed = dict(document)
    for name in _PATHS:
        path = document.get(name)
        if isinstance(path, str | Path) and str(path).strip() and "\0" not in str(path):
            placed[name] = str(_absolute(home / os.path.expanduser(path), name))
    return placed  # of what is no path the reader words the error


def _absolute(folder: Path, name: str) -> Path:
    try:
        return Path(os.path.abspath(folder))
    except FileNotFoundError:
        problem = "is relative to the present folder, which was deleted"
        raise FileError(f"{name} {folder}", problem, "an absolute path") from None


def _config(values: Values, home: Path, catalogue: Catalogue) -> ServiceConfig:
    for section in ("local", "snapshots", "packages", "artifacts"):
        values |= values.pop(section, {})
    values |= _pair(values)
    _check_trust(values)
    types, most = _offered(values)
    said = values.pop("gpu_types", {})
    if values.get("calendar") is not None:
        check_types(values["calendar"], types, "calendar:")
    if "aws" in values:
        _check_machines(values["aws"], types)
    if values["engine"] == "kubernetes":
        given = values.get("kubernetes") or KubernetesSettings()
        values["kubernetes"] = settled(given, home, types)
    folder = Path(values.pop("data_dir", None) or default_data_dir())
    priors = values.pop("priors", {})
    parts, terms = values.pop("parts", {}), _terms(values)
    key = values.pop("secret_key_file", None) or os.environ.get("BOA_SECRET_KEY_FILE")
    return ServiceConfig(
        sharing=_sharing(values, terms, parts),
        terms=terms,
        gpu_types=types,
        unpriced=frozenset(name for name in said if "price" not in said[name]),
        max_nodes=most,
        data_dir=folder,
        secret_key_file=_absolute(Path(key), "secret_key_file") if key else None,
        notify=targets_of(values.pop("notify", {}), home),
        db=values.pop("db", None) or f"sqlite:///{folder / 'boa.db'}",
        priors={name: _prior(name, priors[name], types, home, catalogue) for name in priors},
        **values,
    )


def _check_one_way(values: Values) -> None:
    """A calendar says by the hour of the week how much there is."""
    for name in AMOUNTS:
        if name in values:
            raise InputError(name, f"calendar and {name}", "one of them")


def _spread(values: Values, given: bool) -> None:
    """A budget beside a calendar is what the week is to come to; alone, the calendar says it."""
    calendar: Calendar = values["calendar"]
    if given:
        values["calendar_scaled"] = values["budget"] / calendar.average
        values["calendar"] = calendar.scaled(values["calendar_scaled"])
    else:
        values["budget"] = calendar.average


def _terms(values: Values) -> Terms | None:
    """Where the budget is not by the hour; `budget` is then what it comes to on average, which of a
    project that ends is for whoever knows the time to say."""
    try:
        terms = terms_of(values)
    except Wrong as wrong:
        raise wrong.error("") from None
    values["budget"] = average(terms, values.get("budget", DEFAULT_BUDGET))
    return terms


def _sharing(values: Values, terms: Terms | None, parts: dict[str, Budget]) -> Budget | None:
    calendar: Calendar | None = values.get("calendar")
    periods = () if calendar is None else (period.name for period in calendar.periods)
    for name, of in (("parts", parts), ("calendar", list(periods))):
        if of and values["policy"] != "boa":
            raise InputError(name, ", ".join(of), "policy boa: no other follows a budget")
    if not parts:
        return None
    return shared(values["budget"], terms, parts)


def _check_trust(values: Values) -> None:
    """A header that anybody's word is taken for, or proxies that say nothing, are never meant."""
    if ("trust_user_header" in values) != ("trust_proxy" in values):
        expected = "trust_user_header and trust_proxy together"
        raise InputError("trust_proxy", values.get("trust_proxy"), expected, "goes with the other")


def _pair(values: Values) -> dict[str, str]:
    """An engine, and a cloud whose nodes it can use."""
    engine: str = values["engine"]
    clouds = CLOUDS_OF[engine]
    cloud = values.get("cloud", clouds[0])
    if cloud not in clouds:
        its = " or ".join(name for name in CLOUDS_OF if cloud in CLOUDS_OF[name])
        expected = f"with engine {engine}: {' or '.join(clouds)}; {cloud} goes with engine {its}"
        raise InputError("cloud", cloud, expected)
    return {"cloud": cloud}


def _offered(values: Values) -> tuple[dict[GpuName, GpuType], dict[GpuName, int]]:
    said = values.get("gpu_types")
    if said is None:
        if values["engine"] == "local":
            return machine()
        expected = (
            "the GPU types of its nodes, such as {T4: {price: 0.5, gpus_per_node: 4, max_nodes: 8}}"
        )
        said = f"with engine {values['engine']}: {expected}"
        raise InputError("gpu_types", None, said, "it is missing")
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
