"""Engine and cloud as configured; each is imported only where it is asked for."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from boa.clock import Clock
from boa.clouds.base import Cloud
from boa.engines import users
from boa.engines.base import Engine
from boa.errors import InputError
from boa.model.service import ServiceConfig

if TYPE_CHECKING:
    from boa.clouds.aws import AwsCloud


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
        problem = f"got {config.run_as.default!r}, but Ray runs jobs as its own user on every node"
        raise InputError(
            "run_as", config.run_as.default, "nothing with engine ray; engine local has it", problem
        )
    if config.run_as is not None:
        users.check(config.run_as)
    if config.cloud == "aws" and config.speed != 1:
        raise InputError("speed", config.speed, "1 with cloud aws: its dollars are real")


def engine(config: ServiceConfig, owner: str) -> Engine:
    if config.engine == "ray":
        from boa.engines.ray import RayEngine

        return RayEngine(
            config.data_dir / "runs",
            address=config.ray.address,
            namespace=owner,
            log_bytes=config.log_bytes,
            pass_env=config.pass_env,
        )
    from boa.engines.local import LocalEngine

    if config.run_as is not None:
        users.check_reach(config.run_as, config.data_dir)
    return LocalEngine(
        config.data_dir / "runs",
        log_bytes=config.log_bytes,
        warm_parents=config.warm_parents,
        pass_env=config.pass_env,
        run_as=config.run_as,
    )


def cloud(config: ServiceConfig, clock: Clock, owner: str) -> Cloud:
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
