"""How a service is set up: what `boa.yaml` and the flags of `boa serve` say."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from boa.model.access import Role
from boa.model.budgets import Budget
from boa.model.calendar import Calendar
from boa.model.history_kept import HistoryKept
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.notices import NotifyTarget
from boa.model.priorities import Priorities
from boa.model.profile import ClassProfile
from boa.model.provider_settings import AwsSettings, RaySettings
from boa.model.terms import Terms
from boa.model.workload import Billing, GpuType
from boa.units import GpuName, PerHour, Seconds, UsdPerHour


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPrior:
    """Beliefs about a class before its jobs have shown anything."""

    name: str
    profile: ClassProfile | None = None
    """The class's rates, from a profile file or of a model of the catalogue."""
    arrivals_per_hour: PerHour | None = None
    arrivals_weight_h: float = 1.0
    """How many hours of history the rate above is worth."""
    measured_weight: float = 0.0
    """How many reports the profile is worth at every width; 0: the first report overrules it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAs:
    """Users that jobs run as, by name or number."""

    default: str
    teams: Mapping[str, str] = field(default_factory=dict)

    def user_of(self, team: str) -> str:
        return self.teams.get(team, self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    budget: UsdPerHour
    """Average spend per hour that is steered to; 0 with `terms` of a project that ends."""
    calendar: Calendar | None = None
    """Hours of the week in which the budget is another; `budget` is then their average."""
    calendar_scaled: float = 1.0
    """Times what the calendar says, so that a week comes to the budget beside it."""
    terms: Terms | None = None
    """Money for a month, a quarter or until a date, where it is not said by the hour."""
    max_spend: UsdPerHour | None = None
    """Never spend more than this at any moment."""
    sharing: Budget | None = None
    """Those who share the budget, if somebody does."""
    billing: Billing = "node"
    """The bill that the budget is for: whole nodes from request to gone, or GPUs that jobs hold."""
    gpu_types: Mapping[GpuName, GpuType]
    unpriced: frozenset[GpuName] = frozenset()
    """Types whose price nobody gave: the cloud's own is taken, where it has one."""
    max_nodes: Mapping[GpuName, int] = field(default_factory=dict)
    """Nodes of a type that may be rented at most; types left out have no limit."""
    policy: str = "boa"
    target_efficiency: float | None = None
    """The efficiency that some policies scale to instead of a budget."""
    knob: float | None = None
    """The number of a policy that has one of its own."""
    priorities: Priorities = field(default_factory=Priorities)
    engine: str = "local"
    cloud: str = "local"
    ray: RaySettings = field(default_factory=RaySettings)
    aws: AwsSettings | None = None
    kubernetes: KubernetesSettings = field(default_factory=KubernetesSettings)
    data_dir: Path
    db: str
    """SQLAlchemy's URL."""
    host: str = "127.0.0.1"
    port: int = 8420
    url: str | None = None
    """Where jobs reach the service; None: where it listens."""
    token_file: str | None = None
    """Where the token is that every request needs; None: the service makes one itself."""
    tls_cert: str | None = None
    """PEM file with the certificate and its chain; None: no TLS."""
    tls_key: str | None = None
    """PEM file with its private key; None: it is in the same file."""
    trust_user_header: str | None = None
    """The header in which a proxy says who asks; None: none is believed."""
    trust_proxy: tuple[str, ...] = ()
    """Addresses or networks of proxies that are believed."""
    trust_role: Role = "member"
    """The role of users whom a proxy names, and who have no token of their own."""
    speed: float = 1.0
    """Server seconds per second of the wall: compressed time, for demos and tests."""
    round_s: Seconds = 60.0
    """How often a policy is asked that looks at all jobs at once."""
    replan_s: Seconds = 900.0
    keep_warm_s: Seconds = 300.0
    """How long an empty node is kept before it is given back; under `billing: node` BOA keeps a
    node as long as it is worth its price."""
    pacing_h: float | None = None
    """Over how many hours an overspent or underspent dollar is made good; None: a day, and under
    `billing: node` as long as luck asks for."""
    refused_s: Seconds = 60.0
    """After the cloud said no: how long until it is asked again."""
    provision_s: Seconds = 0.0
    """Seconds from renting a node of the local cloud until jobs can start on it."""
    release_s: Seconds = 0.0
    """Seconds that a node of the local cloud is charged for after it was given back."""
    backoff_s: Seconds = 5.0
    """Before the first restart of a job that failed; doubles each time, up to ten minutes."""
    warm_parents: int = 4
    """Processes kept that have imported what jobs import, at most; 0: none."""
    memory_share: float = 0.4
    """The share of a node's memory, at most, for training state that stays there between two
    runs; 0: none."""
    log_bytes: int = 10 * 1024**2
    """Kept of every worker's log, per attempt."""
    snapshot_every_h: float = 1.0
    """Hours of the wall between two copies of the store, where it is a file; 0: none are taken."""
    snapshots_kept: int = 24
    """The newest so many of them are kept."""
    keep: HistoryKept = field(default_factory=HistoryKept)
    package_bytes: int = 100 * 1024**2
    """Bytes that a package may have."""
    packages_kept_days: float = 30.0
    """Days of the wall since somebody last submitted with a package, after which it goes."""
    artifacts_kept_days: float = 30.0
    """Days since the end of a job, after which its artifacts go."""
    artifacts_bytes: int | None = None
    """Bytes that the artifacts of all ended jobs may take; None: no limit."""
    pass_env: tuple[str, ...] = ()
    """Variables of the service's environment that jobs see, beside the usual; PREFIX_* of them."""
    run_as: RunAs | None = None
    """None: jobs run as the service's own user."""
    secret_key_file: Path | None = None
    """The key of secrets; None: $BOA_SECRET_KEY_FILE, else a file in the data folder."""
    notify: tuple[NotifyTarget, ...] = ()
    """Who is told of ends, failures and money."""
    priors: Mapping[str, ClassPrior] = field(default_factory=dict)

    @property
    def history_kept(self) -> HistoryKept:
        """`keep`, where a job stays for longer than its artifacts: by its end they are removed."""
        days = self.keep.jobs_days
        if days is None:
            return self.keep
        return replace(self.keep, jobs_days=max(days, self.artifacts_kept_days + 1.0))
