"""`boa serve`: everything wired together, from listening to letting go."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boa._version import __version__
from boa.api.published import publishing
from boa.engines.base import Engine
from boa.errors import BoaError, InputError
from boa.model.cluster import Policy
from boa.model.service import ServiceConfig
from boa.runtime.loop import ControlLoop
from boa.runtime.vault import Vault
from boa.scheduler.observe.commands import check_cap
from boa.scheduler.words.of_limits import calendar_scaled, set_at_run_time
from boa.server import engine_and_cloud, keys
from boa.server.app import create_app
from boa.server.files import JobFiles
from boa.server.folder import TOKEN, DataFolder
from boa.server.http import logs
from boa.server.http.access import TrustedProxy
from boa.server.http.limits import Limits, raise_descriptors
from boa.server.http.run import listen, serve, url_of
from boa.server.http.tls import is_exposed, report_ca, tls_of
from boa.server.kubernetes_start import starting_in
from boa.server.notify.couriers import Couriers, Sender, check_files
from boa.server.notify.month import MonthWatch
from boa.server.opening import open_kept
from boa.server.what_if.runner import Simulations
from boa.store.base import Store
from boa.store.snapshots import FOLDER, SnapshotKeeper
from boa.store.sql import file_at
from boa.units import Seconds, UsdPerHour

if TYPE_CHECKING:
    from boa.clouds.kubernetes.lease import Lease

SWITCH_S = 0.001
"""How long a thread may go on while others wait: a decision is to keep no request waiting, and a
request comes to wait several times."""


class GaveWay(BoaError):
    """The service has ended though nobody told it to."""

    def __init__(self) -> None:
        super().__init__(
            "the database has changed under this service (the log has more). Started again, boa "
            "serve goes on from what is stored"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A service that has not been started yet."""

    control: ControlLoop
    store: Store
    engine: Engine
    secret: bytes
    endless_before: Seconds
    folder: DataFolder
    simulations: Simulations
    snapshots: SnapshotKeeper
    couriers: Couriers
    month: MonthWatch
    files: JobFiles
    lease: "Lease | None" = None
    """Keeps other services out of the same part of a Kubernetes cluster."""

    def start(self) -> None:
        self.control.start()
        self.snapshots.start()
        self.couriers.start()
        self.month.start(self.control.notices.targets)
        self.files.start(self.control, self.store)

    def close(self) -> None:
        """Jobs go on; nodes stay rented."""
        self.files.close()
        self.month.close()
        self.couriers.close()
        self.snapshots.close()
        self.simulations.close()
        self.control.close()
        self.store.close()
        if self.lease is not None:
            self.lease.close()
        self.folder.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenChoice:
    """The token that the service is to want; `own`: the one that it makes for itself."""

    token: str | None = None
    own: bool = False
    told: bool = False
    """Whether commands of the same user are told of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A service that answers."""

    url: str
    budget: UsdPerHour
    """In force: one that was set while it ran is remembered."""
    token: str | None
    token_file: Path | None
    """Where the service keeps the token that it has made."""
    told: bool
    """Whether commands of the same user find the token by themselves, or need none."""
    notices: Sequence[str] = ()
    """Lines that whoever starts it should know: limits that were set at run time."""


def run(
    config: ServiceConfig,
    choice: TokenChoice,
    on_ready: Callable[[Ready], None],
    *,
    accept_store: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT. The port is taken before anything else is begun.

    Raises GaveWay where the database is another service's now, LeaseLost where the cluster is, so
    that whoever looks after this one starts it again. `accept_store`: go on with the store that is
    there, whatever it has lost.
    """
    logs.configure()
    limits = Limits().within(raise_descriptors())
    sys.setswitchinterval(SWITCH_S)
    ends: list[BoaError] = []

    def give_way(why: BoaError) -> None:
        ends.append(why)
        os.kill(os.getpid(), signal.SIGTERM)

    tls = tls_of(config)
    if tls is not None and is_exposed(tls):
        logs.log("warning", f"{tls.key} is open to other users: chmod 600 it")
    with closing(listen(config.host, config.port)) as listening, ExitStack() as undo:
        url = url_of(listening, tls)
        parts = build(config, url, accept_store=accept_store)
        undo.callback(parts.close)
        token = parts.folder.token() if choice.own else choice.token
        app = create_app(
            parts.control,
            parts.store,
            parts.engine,
            token=token,
            secret=parts.secret,
            endless_before=parts.endless_before,
            version=__version__,
            speed=config.speed,
            simulations=parts.simulations,
            limits=limits,
            proxy=_proxy(config),
            send=parts.couriers.send,
            files=parts.files,
        )
        files = undo.enter_context(publishing(url, token if choice.told else None))

        def ready() -> None:
            money = parts.control.snapshot.money
            notices = set_at_run_time(money)
            if money.budget_set is None:
                notices = [*calendar_scaled(config.budget, config.calendar_scaled), *notices]
            on_ready(
                Ready(
                    url=url,
                    budget=money.budget,
                    notices=notices,
                    token=token,
                    token_file=parts.folder.path / TOKEN if choice.own else None,
                    told=bool(files) or not choice.told,
                )
            )
            if not sys.stderr.isatty():  # there `on_ready` tells a person
                for line in notices:
                    logs.log("warning", line)

        parts.control.on_overtaken = lambda: give_way(GaveWay())
        if parts.lease is not None:
            parts.lease.tell(give_way)
        parts.start()
        serve(app, listening, ready, tls)
        app.state.refusals.close()
    if ends:
        raise ends[0]


def build(config: ServiceConfig, url: str, *, accept_store: bool = False) -> Parts:
    """Store, engine, cloud and loop as configured. `url`: where jobs report to."""
    from boa.clock import SteadyClock
    from boa.runtime.assemble import assemble, new_cluster
    from boa.runtime.calculator import BackgroundCalculator
    from boa.scheduler.state import owner_of

    policy = _policy(config)
    engine_and_cloud.check(config)
    check_files(config.notify)
    with ExitStack() as undo:
        folder = DataFolder(config.data_dir, passable=config.run_as is not None)
        undo.callback(folder.close)
        store, saved = open_kept(config, folder, accept=accept_store)
        undo.callback(store.close)
        clock = SteadyClock(config.speed, saved.meta.get("clock"))
        endless_before = keys.endless_before(store, saved, clock.now())
        secret = keys.report_key(config.data_dir, store, saved)
        owner = owner_of(saved.meta.get("cluster") or new_cluster(config.data_dir))
        kube = engine_and_cloud.kubernetes(config)
        lease = None
        with starting_in(kube, config.kubernetes):
            if kube is not None:
                lease = engine_and_cloud.lease(config, kube)
                undo.callback(lease.close)
            schedule = engine_and_cloud.schedule(config)
            cloud = engine_and_cloud.priced(
                engine_and_cloud.cloud(config, clock, owner, kube), schedule, clock
            )
            check_cap(config.max_spend, cloud.offers())
            engine = engine_and_cloud.engine(config, owner, kube)
        control = assemble(
            config,
            url=config.url or url,
            store=store,
            saved=saved,
            engine=engine,
            cloud=cloud,
            clock=clock,
            calculator=BackgroundCalculator(),
            policy=policy,
            secret=secret,
            report_ca=report_ca(config),
            log=logs.log,
            vault=Vault(keys.secret_key_file(config), saved.meta),
            schedule=schedule,
        )
        folder.belongs_to(control.state.cluster)
        files = JobFiles.of(config)
        control.places = files.places
        undo.pop_all()
    sender = Sender(control.vault, control.state.cluster)
    couriers = Couriers(config.notify, store, control, sender)
    control.notices.on_new = couriers.wake
    return Parts(
        couriers=couriers,
        month=MonthWatch(control, store, config.speed),
        control=control,
        store=store,
        engine=engine,
        secret=secret,
        endless_before=endless_before,
        folder=folder,
        simulations=Simulations(
            config.data_dir / "what-if",
            control.scheduler.decider.gpu_types,
            billing=config.billing,
            node_times=control.scheduler.decider.node_times,
            calendar=config.calendar,
        ),
        snapshots=SnapshotKeeper(
            file_at(config.db),
            config.data_dir / FOLDER,
            every_h=config.snapshot_every_h,
            keep=config.snapshots_kept,
        ),
        files=files,
        lease=lease,
    )


def _proxy(config: ServiceConfig) -> TrustedProxy | None:
    if config.trust_user_header is None:
        return None
    return TrustedProxy(config.trust_user_header, config.trust_proxy, config.trust_role)


def _policy(config: ServiceConfig) -> Policy:
    """BOA follows the plan that is made in the background; others decide by themselves."""
    from boa.policy.registry import POLICIES, Knobs, choose, live_policies

    if config.policy not in live_policies():
        raise InputError("policy", config.policy, f"one of {', '.join(live_policies())}")
    facts = POLICIES[config.policy]
    if facts.knob == "budget":
        return choose(config.policy, Knobs(budget=config.budget), config.billing).policy
    if facts.knob == "knob":
        if config.knob is None:
            raise InputError("knob", None, f"a number above 0 ({facts.knob_means})")
        return choose(config.policy, Knobs(knob=config.knob)).policy
    if facts.knob == "nodes":
        return _on_all_nodes(config)
    if config.target_efficiency is None:
        expected = f"a number between 0 and 1: {config.policy} scales to it"
        raise InputError("target_efficiency", None, expected)
    return choose(config.policy, Knobs(target=config.target_efficiency)).policy


def _on_all_nodes(config: ServiceConfig) -> Policy:
    """A policy for a fixed cluster, on as many nodes of every type as there may be."""
    from boa.policy.registry import Knobs, choose
    from boa.policy.rivals.standing import Standing

    for gpu in config.gpu_types:
        if config.max_nodes.get(gpu) is None:
            expected = f"a number of nodes: {config.policy} runs on a fixed cluster, all of them"
            raise InputError(f"gpu_types.{gpu}.max_nodes", None, expected)
    nodes = {gpu: config.max_nodes[gpu] for gpu in config.gpu_types}
    return Standing(choose(config.policy, Knobs(nodes=nodes)).policy, nodes)
