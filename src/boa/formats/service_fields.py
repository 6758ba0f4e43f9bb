"""The fields of `boa.yaml`; `boa.formats.service` makes a service's settings of them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

from boa.formats.access import ACCESS
from boa.formats.budget_terms import TERMS
from boa.formats.budgets import PARTS
from boa.formats.calendar import CALENDAR
from boa.formats.containers import as_given, mapping_of, object_of
from boa.formats.isolation import ISOLATION
from boa.formats.keeping import KEEPING
from boa.formats.kubernetes import KUBERNETES
from boa.formats.notify import NOTIFY
from boa.formats.parts import CLASS, LINE, PATH, VERSION_1, printable
from boa.formats.priorities import PRIORITY_WEIGHTS
from boa.formats.providers import AWS, RAY
from boa.formats.settings import DEFAULTS, setting
from boa.formats.shapes import (
    Field,
    Format,
    choice,
    nullable,
    number,
    or_empty,
    text,
    then,
    whole,
)
from boa.model.policies import live_policies
from boa.model.provider_settings import CLOUDS_OF
from boa.model.service import ClassPrior
from boa.model.workload import BILLINGS
from boa.units import DAY_S, UsdPerHour

Values: TypeAlias = dict[str, Any]

DEFAULT_BUDGET: UsdPerHour = 4.0
MAX_GPUS_PER_NODE = 1024
MAX_NODES = 100_000
MAX_TEXT = 2000
MAX_PORT = 65_535
MAX_WARM_PARENTS = 100
MAX_SNAPSHOTS = 10_000
MAX_LOG_MB = 102_400.0
WEEK_S, YEAR_H = 7 * DAY_S, 8760.0
PRIOR_WEIGHTS: Mapping[str, float] = {"measured_weight": 1e12, "arrivals_weight_h": 1e6}
"""How sure a prior may be of itself, at the most."""
_CLOUDS = list(dict.fromkeys(cloud for clouds in CLOUDS_OF.values() for cloud in clouds))
_PAIRS = "; ".join(f"with engine {name}: {' or '.join(of)}" for name, of in CLOUDS_OF.items())
_PRIOR: Values = {part.name: part.default for part in dataclasses.fields(ClassPrior)}

_GPU_TYPE = or_empty(
    object_of(
        Field(
            "price",
            number(above=0),
            "USD per GPU and hour.",
            otherwise="1; with cloud `aws`, AWS's",
        ),
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
        default=DEFAULTS["provision_s"],
    ),
    Field(
        "release_s",
        number(least=0, most=WEEK_S),
        "How long a node is charged for after it was given back.",
        default=DEFAULTS["release_s"],
    ),
    make=as_given,
)
_SNAPSHOTS = object_of(
    Field(
        "every_h",
        number(least=0, most=YEAR_H),
        "Hours between two copies; 0: none are taken.",
        default=DEFAULTS["snapshot_every_h"],
        to="snapshot_every_h",
    ),
    Field(
        "keep",
        whole(least=1, most=MAX_SNAPSHOTS),
        "The newest so many are kept.",
        default=DEFAULTS["snapshots_kept"],
        to="snapshots_kept",
    ),
    make=as_given,
)


def _log_bytes(megabytes: float) -> int:
    return max(1, round(megabytes * 1024**2))


_MONEY = (
    Field(
        "budget_per_hour",
        number(above=0, of="USD per hour"),
        "Average spend per hour that is steered to.",
        otherwise=f"{DEFAULT_BUDGET:g}",
        to="budget",
    ),
    *TERMS,
    Field(
        "max_spend_per_hour",
        nullable(number(above=0, of="USD per hour")),
        "Never spend more than this at any moment.",
        otherwise="no limit",
        to="max_spend",
    ),
    Field(
        "calendar",
        nullable(CALENDAR.shape),
        "Hours of the week in which the budget is another ([calendars.md](calendars.md)). With "
        "`budget_per_hour` beside it, scaled to that on average over a week.",
        otherwise="the same at all hours",
    ),
    dataclasses.replace(PARTS, meaning=f"{PARTS.meaning} See [teams.md](teams.md)."),
    setting(
        "billing",
        choice(BILLINGS),
        "What the budget counts: whole nodes from request to gone, booting and idle included, or "
        "the GPUs that jobs hold (the paper's accounting).",
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
    Field("engine", choice(list(CLOUDS_OF)), "What starts jobs.", default=DEFAULTS["engine"]),
    Field(
        "cloud",
        choice(_CLOUDS, expected=_PAIRS),
        "What nodes are rented from; `local` goes with engine `local`, `ray` and `aws` with `ray`, "
        "`kubernetes` with `kubernetes`.",
        otherwise="the engine's own",
    ),
    Field(
        "data_dir",
        text("a folder", pattern=PATH, words="path, relative to this file"),
        "Where it keeps its database, logs and checkpoints.",
        otherwise="see below",
    ),
    Field("db", _DB, "SQLAlchemy's URL of the database.", otherwise="`sqlite:///DATA_DIR/boa.db`"),
    setting("host", LINE, "Where it listens. Without a token or TLS of yours, loopback only."),
    setting("port", whole(least=0, most=MAX_PORT), "Where it listens; 0: any free one."),
    Field(
        "url",
        then(_URL, lambda url: url.rstrip("/")),
        "Where jobs reach the service, if they run on other machines.",
        otherwise="where it listens",
    ),
)
_HABITS = (
    setting(
        "speed",
        number(above=0, most=1e6),
        "Server seconds per second of the wall: compressed time, for demos and tests.",
    ),
    setting(
        "round_s",
        number(above=0, most=DAY_S),
        "How often a policy is asked that looks at all jobs at once.",
    ),
    setting("replan_s", number(above=0, most=WEEK_S), "How often the plan is made anew."),
    setting(
        "keep_warm_s",
        number(least=0, most=WEEK_S),
        "How long an empty node is kept before it is given back; with `boa` and `billing: node`, "
        "as long as it is worth its price.",
    ),
    Field(
        "pacing_h",
        nullable(number(above=0, most=YEAR_H)),
        "Over how many hours an overspent or underspent dollar is made good.",
        otherwise="24; with `billing: node` up to 720, by how large and bursty jobs are",
    ),
    setting(
        "refused_s",
        number(least=0, most=DAY_S),
        "After the cloud said no: how long until it is asked again.",
    ),
    setting(
        "backoff_s",
        number(least=0, most=DAY_S),
        "Before the first restart of a job that failed; doubles each time.",
    ),
    setting(
        "warm_parents",
        whole(least=0, most=MAX_WARM_PARENTS),
        "Processes kept that have imported what jobs import, to fork jobs from, at most; 0: none.",
    ),
    setting(
        "memory_share",
        number(least=0, most=0.9),
        "Share of a node's memory, at most, for training state that stays there between two runs; "
        "0: none.",
    ),
    Field(
        "log_mb",
        then(number(above=0, most=MAX_LOG_MB), _log_bytes),
        "MB kept of every worker's log, per attempt.",
        otherwise=f"{DEFAULTS['log_bytes'] / 1024**2:g}",
        to="log_bytes",
    ),
    Field(
        "snapshots",
        _SNAPSHOTS,
        "Copies of the database, where it is a file, in `snapshots` of the data folder.",
    ),
    Field("local", _LOCAL, "How the local cloud acts."),
    Field("ray", or_empty(RAY), "The Ray cluster, for engine `ray`."),
    Field("aws", AWS, "What nodes are on AWS, for cloud `aws`."),
    Field("kubernetes", or_empty(KUBERNETES), "The cluster, for engine `kubernetes`."),
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


CONFIG: Format[Values] = Format(
    "BOA service",
    "How `boa serve` is set up. Flags win over it; every field may be left out. Durations are "
    "seconds, rates per hour, money USD.",
    object_of(
        VERSION_1,
        *_MONEY,
        setting(
            "policy",
            choice(live_policies()),
            "Who decides. All but `boa` need `target_efficiency`, a `knob`, or, for a fixed "
            "cluster (`tiresias`, `gavel`), `max_nodes` of every type: all of them, while there "
            "are jobs.",
        ),
        Field(
            "target_efficiency",
            nullable(number(above=0, most=1)),
            "What policies other than `boa` scale the cluster to, instead of to a budget.",
            otherwise="none",
        ),
        Field(
            "knob",
            nullable(number(above=0)),
            "The number of a policy that has one of its own ([policies](concepts/policies.md)).",
            otherwise="none",
        ),
        PRIORITY_WEIGHTS,
        *_PLACES,
        *ISOLATION,
        *ACCESS,
        NOTIFY,
        *KEEPING,
        *_HABITS,
        make=as_given,
    ),
)
