"""Makers of worlds, with the servers that worlds share."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import postgresql
from _campaign.database import Database, PostgresqlWorld
from _campaign.world import Means, World

if TYPE_CHECKING:
    from _campaign.clusters import AwsWorld, RayWorld

Maker = Callable[[Means, Random], World]


def available() -> list[str]:
    """Worlds that can be had on this machine."""
    found = ["local", *(["postgresql"] if postgresql.programs() else [])]
    try:
        from _campaign import clusters
    except ImportError:
        return found
    rays = ["ray"] if clusters.has_ray() else []
    return [*found, *rays, *(["aws"] if rays and clusters.has_moto() else [])]


class Makers(ExitStack):
    """Servers are started by the first world that needs them, and end with the campaign."""

    def __init__(self, means: Means) -> None:
        super().__init__()
        self._servers = means.servers
        self._known: dict[str, Maker] = {"local": World}

    def of(self, kind: str) -> Maker:
        if kind not in self._known:
            begin = {"postgresql": self._postgresql, "ray": self._ray, "aws": self._aws}
            self._known[kind] = begin[kind]()
        return self._known[kind]

    def _postgresql(self) -> Maker:
        found = postgresql.programs()
        assert found is not None
        database = self.enter_context(closing(Database(found)))
        self._servers.append(database.wrapper)
        return lambda means, luck: PostgresqlWorld(means, luck, database)

    def _ray(self) -> Maker:
        from _campaign.clusters import KINDS, RayWorld
        from _rays import _marked, autoscaled_cluster

        rays = self.enter_context(autoscaled_cluster(KINDS, idle_s=1.0))
        self._servers.append(partial(_marked, rays.mark))

        def make(means: Means, luck: Random) -> "RayWorld":
            return RayWorld(means, luck, rays)

        return make

    def _aws(self) -> Maker:
        from _campaign.clusters import AwsWorld, ray_environment
        from _rays import _marked, fixed_cluster
        from aws_boot import hypervisor
        from aws_server import Aws, moto_server

        layer = self.enter_context(moto_server())
        aws = Aws(layer)
        rays = self.enter_context(fixed_cluster([]))
        self._servers.append(partial(_marked, rays.mark))
        machines = self.enter_context(hypervisor(layer, rays.folder, dict(ray_environment(rays))))

        def make(means: Means, luck: Random) -> "AwsWorld":
            return AwsWorld(means, luck, rays, aws, machines)

        return make
