"""Engine and cloud as configured; each is imported only where it is asked for."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from boa.api.hosts import is_loopback
from boa.clock import Clock
from boa.clouds.base import Cloud
from boa.engines import users
from boa.engines.base import Engine
from boa.errors import InputError
from boa.model.calendar_prices import prices_by
from boa.model.prices import CONSTANT, PriceSchedule
from boa.model.service import ServiceConfig

if TYPE_CHECKING:
    from boa.clouds.aws import AwsCloud
    from boa.clouds.kubernetes.lease import Lease
    from boa.kubelink import Kube

IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
"""A variable that every container of a cluster has."""


def check(config: ServiceConfig) -> None:
    """Before anything is begun."""
    if config.cloud == "aws" and config.aws is None:
        raise InputError("aws", None, "a section of the config file: see docs/aws.md")
    if config.cloud == "ray" and config.ray.nodes == "autoscaler":
        for name in config.gpu_types:
            if name not in config.max_nodes:
                # Of a demand beyond its own limit Ray grants nothing at all, and tells nobody.
                expected = "as many nodes as Ray's autoscaler may bring (its max_workers), or fewer"
                raise InputError(f"gpu_types.{name}.max_nodes", None, expected)
    if config.run_as is not None and config.engine != "local":
        _check_run_as(config.engine, config.run_as.default)
    if config.run_as is not None:
        users.check(config.run_as)
    if config.speed != 1:
        _check_speed(config)
    if config.engine == "kubernetes":
        _check_kubernetes(config)


def _check_speed(config: ServiceConfig) -> None:
    whose = ""
    if config.cloud == "aws":
        whose = "cloud aws"
    elif config.cloud == "kubernetes" and config.kubernetes.nodes != "fixed":
        whose = f"kubernetes.nodes {config.kubernetes.nodes}"
    if whose:
        raise InputError("speed", config.speed, f"1 with {whose}: its dollars are real")


def _check_run_as(engine: str, user: str) -> None:
    where, instead = "Ray runs jobs as its own user on every node", "engine local has it"
    if engine == "kubernetes":
        where = "a pod runs as its image and pod_template say"
        instead = "spec.securityContext of kubernetes.pod_template has it"
    expected = f"nothing with engine {engine}; {instead}"
    raise InputError("run_as", user, expected, f"got {user!r}, but {where}")


def _check_kubernetes(config: ServiceConfig) -> None:
    from boa.engines.kubernetes import template

    template.read(config.kubernetes.pod_template)
    if config.pass_env:
        problem = "pods have nothing of the service's environment"
        expected = "nothing with engine kubernetes; env of a container in kubernetes.pod_template"
        raise InputError("pass_env", list(config.pass_env), expected, problem)
    if IN_CLUSTER in os.environ and config.url is None and is_loopback(config.host):
        problem = f"got nothing, and {config.host} is the service's own pod to every pod"
        expected = "where jobs reach the service: http://SERVICE.NAMESPACE.svc:PORT"
        raise InputError("url", None, expected, problem)


def kubernetes(config: ServiceConfig) -> "Kube | None":
    """The cluster that jobs run in, with engine kubernetes."""
    if config.engine != "kubernetes":
        return None
    from boa import kubelink

    of = config.kubernetes
    return kubelink.connect(of.kubeconfig, of.context, of.namespace)


def lease(config: ServiceConfig, kube: "Kube") -> "Lease":
    """Taken, so that no other service of this owner begins, and kept from then on: what follows
    may take longer than it lasts. Without it nothing is changed there."""
    from boa.clouds.kubernetes.lease import Lease, this_holder

    own = kubernetes(config)
    assert own is not None
    taken = Lease(own, config.kubernetes.owner, this_holder(config.data_dir))
    try:
        taken.take()
    except BaseException:
        own.close()
        raise
    taken.keep()
    kube.before_change = taken.check
    return taken


def engine(config: ServiceConfig, owner: str, kube: "Kube | None" = None) -> Engine:
    """`kube`: the cluster, which engine kubernetes needs."""
    if config.engine == "kubernetes":
        assert kube is not None
        from boa.engines.kubernetes import KubernetesEngine

        return KubernetesEngine(
            config.data_dir / "runs",
            kube=kube,
            settings=config.kubernetes,
            log_bytes=config.log_bytes,
        )
    if config.engine == "ray":
        from boa.engines.ray import RayEngine

        return RayEngine(
            config.data_dir / "runs",
            address=config.ray.address,
            namespace=owner,
            log_bytes=config.log_bytes,
            pass_env=config.pass_env,
            memory_share=config.memory_share,
        )
    from boa.engines.local import LocalEngine

    if config.run_as is not None:
        users.check_reach(config.run_as, config.data_dir)
    return LocalEngine(
        config.data_dir / "runs",
        log_bytes=config.log_bytes,
        warm_parents=config.warm_parents,
        memory_share=config.memory_share,
        pass_env=config.pass_env,
        run_as=config.run_as,
    )


def cloud(config: ServiceConfig, clock: Clock, owner: str, kube: "Kube | None" = None) -> Cloud:
    """`kube`: the cluster, which cloud kubernetes needs."""
    if config.cloud == "kubernetes":
        assert kube is not None
        from boa.clouds.kubernetes.cloud import kubernetes_cloud

        return kubernetes_cloud(
            kube,
            config.kubernetes,
            config.data_dir / "kubernetes.json",
            service=owner,
            gpu_types=config.gpu_types,
            max_nodes=config.max_nodes,
            max_spend=config.max_spend,
            clock=clock,
            speed=config.speed,
        )
    if config.cloud == "ray":
        from boa.clouds.ray.cloud import RayCloud

        return RayCloud(
            config.data_dir / "ray.json",
            address=config.ray.address,
            namespace=owner,
            nodes=config.ray.nodes,
            gpu_types=config.gpu_types,
            max_nodes=config.max_nodes,
            clock=clock,
        )
    if config.cloud == "aws":
        return aws_cloud(config, clock, owner, _joined(config, owner))
    from boa.clouds.local import LocalCloud

    return LocalCloud(
        config.data_dir / "cloud.json",
        gpu_types=config.gpu_types,
        max_nodes=config.max_nodes,
        clock=clock,
        provision_s=config.provision_s,
        release_s=config.release_s,
    )


def schedule(config: ServiceConfig) -> PriceSchedule:
    """Prices as the calendar has them, but for those of spot nodes: AWS names them."""
    machines = {} if config.aws is None else config.aws.machines
    spot = {gpu for gpu in config.unpriced if gpu in machines and machines[gpu].spot}
    return prices_by(config.calendar, spot)


def priced(cloud: Cloud, schedule: PriceSchedule, clock: Clock) -> Cloud:
    """A cloud that charges by the schedule."""
    if schedule is CONSTANT:
        return cloud
    from boa.clouds.by_calendar import PricedByCalendar

    return PricedByCalendar(cloud, schedule, clock)


def aws_cloud(
    config: ServiceConfig, clock: Clock, owner: str, joined: Callable[[], Mapping[str, str]]
) -> "AwsCloud":
    from boa.clouds.aws import AwsCloud

    assert config.aws is not None
    return AwsCloud(
        config.aws,
        gpu_types=config.gpu_types,
        unpriced=config.unpriced,
        max_nodes=config.max_nodes,
        max_spend=config.max_spend,
        clock=clock,
        owner=owner,
        joined=joined,
    )


def _joined(config: ServiceConfig, owner: str) -> Callable[[], Mapping[str, str]]:
    """Which instances have joined the Ray cluster: token -> the node's id there."""
    from boa import raylink

    ray = raylink.connect(config.ray.address, owner)

    def joined() -> Mapping[str, str]:
        ours = (n for n in raylink.nodes(ray) if n.alive and raylink.TOKEN_LABEL in n.labels)
        return {node.labels[raylink.TOKEN_LABEL]: node.id for node in ours}

    return joined
