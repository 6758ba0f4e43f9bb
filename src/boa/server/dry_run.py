"""`boa serve --dry-run`: what the service would do at AWS or in a cluster, without doing it."""

import socket
import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from boa.clock import SteadyClock
from boa.errors import UsageError
from boa.model.service import ServiceConfig
from boa.runtime.assemble import new_cluster
from boa.scheduler.state import owner_of
from boa.server import engine_and_cloud
from boa.server.looking import check_owner, look_beside, peek, what_to_do
from boa.store.errors import StoreRefused
from boa.store.sql import parsed

if TYPE_CHECKING:
    from boa.clouds.aws.dry_run import Step
    from boa.clouds.kubernetes.dry_run import Step as KubernetesStep


def dry_run(config: ServiceConfig) -> "Sequence[Step | KubernetesStep]":
    """Reads the database, asks AWS or the cluster, and changes nothing in either. Ray need not
    run."""
    if config.cloud not in ("aws", "kubernetes"):
        raise UsageError(
            f"--dry-run shows what would be done at AWS or in a Kubernetes cluster; cloud "
            f"{config.cloud} has nothing to show."
        )
    engine_and_cloud.check(config)
    cluster, known = _stored(config) if config.data_dir.exists() else ("", [])
    owner = owner_of(cluster or new_cluster(config.data_dir))
    if config.cloud == "kubernetes":
        return _in_cluster(config, owner, known)
    from boa.clouds.aws.dry_run import dry_run as steps

    return steps(engine_and_cloud.aws_cloud(config, SteadyClock(), owner, dict), known)


def _in_cluster(
    config: ServiceConfig, owner: str, known: Sequence[str]
) -> "Sequence[KubernetesStep]":
    from boa.clouds.kubernetes.dry_run import Plan
    from boa.clouds.kubernetes.dry_run import dry_run as steps
    from boa.clouds.kubernetes.lease import Holder, folder_id
    from boa.engines.kubernetes.manifest import example
    from boa.engines.kubernetes.template import read

    kube = engine_and_cloud.kubernetes(config)
    assert kube is not None
    plan = Plan(
        settings=config.kubernetes,
        gpu_types=config.gpu_types,
        max_nodes=config.max_nodes,
        max_spend=config.max_spend,
        service=owner,
        holder=Holder(socket.gethostname(), "", folder_id(config.data_dir)),
        known=known,
        pod=example(config.kubernetes),
        image=read(config.kubernetes.pod_template).image or config.kubernetes.image,
        url=config.url or f"http://{config.host}:{config.port}",
    )
    with closing(kube):
        return steps(kube, plan, time.time())


def _stored(config: ServiceConfig) -> tuple[str, list[str]]:
    """The service's name for itself, and the tokens of its nodes. Refused is what a start would
    refuse."""
    seen = look_beside(config.db, config.data_dir)
    if seen.faults:
        shown = parsed(config.db).render_as_string()  # without its password
        raise StoreRefused(shown, seen.faults, what_to_do(config.data_dir, seen))
    if not seen.found.there:
        return "", []
    meta, nodes = peek(config.db)
    check_owner(config.data_dir, meta)
    return meta.get("cluster") or "", [node.token for node in nodes]
