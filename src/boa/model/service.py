"""How a service is set up: what `boa.yaml` and the flags of `boa serve` say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from boa.model.access import Role
from boa.model.kubernetes_settings import KubernetesSettings
from boa.model.notices import NotifyTarget
from boa.model.profile import ClassProfile
from boa.model.provider_settings import AwsSettings, RaySettings
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
    """Average spend per hour that is steered to."""
    max_spend: UsdPerHour | None = None
    """Never spend more than this at any moment."""
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
