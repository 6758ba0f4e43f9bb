"""Engine, cloud, store and loop, as configured: the one place that knows which is which."""

import math
import secrets

from boa.clock import Clock, SteadyClock
from boa.clouds.base import Cloud
from boa.clouds.local import LocalCloud
from boa.control.assemble import assemble
from boa.control.calculator import BackgroundCalculator
from boa.control.loop import ControlLoop
from boa.engines.base import Engine
from boa.engines.local import LocalEngine
from boa.errors import InputError
from boa.model.cluster import Policy
from boa.model.service import ServiceConfig
from boa.policy.boa import Boa
from boa.server import logs
from boa.sim.policies import Knobs, choose
from boa.store.base import Changes, Saved, Store
from boa.store.sql import open_store


def build(config: ServiceConfig, url: str) -> tuple[ControlLoop, Store, Engine, bytes]:
    """A loop that has not been started, what it stands on, and the secret of report tokens."""
    policy = policy_of(config)
    config.data_dir.mkdir(parents=True, exist_ok=True)
    store = open_store(config.db)
    try:
        saved = store.load()
        clock = SteadyClock(config.speed, _last_time(saved))
        secret = _secret(store, saved)
        engine, cloud = _engine(config), _cloud(config, clock)
        control = assemble(
            config,
            url=url,
            store=store,
            saved=saved,
            engine=engine,
            cloud=cloud,
            clock=clock,
            calculator=BackgroundCalculator(),
            policy=policy,
            secret=secret,
            log=logs.log,
        )
    except BaseException:
        store.close()
        raise
    return control, store, engine, secret


def policy_of(config: ServiceConfig) -> Policy:
    """The same policies as in the simulator. BOA's plans come from the background here."""
    if config.policy == "boa":
        return Boa(config.budget, replan_s=math.inf)
    return choose(config.policy, Knobs(target=config.target_efficiency)).policy


def _engine(config: ServiceConfig) -> Engine:
    if config.engine != "local":
        raise InputError("engine", config.engine, "local")
    return LocalEngine(config.data_dir / "runs", log_bytes=config.log_bytes)


def _cloud(config: ServiceConfig, clock: Clock) -> Cloud:
    if config.cloud != "local":
        raise InputError("cloud", config.cloud, "local")
    return LocalCloud(
        config.data_dir / "cloud.json",
        gpu_types=config.gpu_types,
        max_nodes=config.max_nodes,
        clock=clock,
        provision_s=config.provision_s,
        release_s=config.release_s,
    )


def _last_time(saved: Saved) -> tuple[float, float] | None:
    """(server time, wall time) when the service last wrote anything down."""
    last = saved.meta.get("clock")
    return None if last is None else (last[0], last[1])


def _secret(store: Store, saved: Saved) -> bytes:
    """Kept, so that jobs which outlive the service can go on reporting to the next one."""
    known = saved.meta.get("secret")
    if known is None:
        known = secrets.token_hex(32)
        store.commit(Changes(meta={"secret": known}))
    return bytes.fromhex(known)
