"""`boa serve --dry-run`: what the service would do at AWS, without doing it."""

from collections.abc import Sequence
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


def dry_run(config: ServiceConfig) -> "Sequence[Step]":
    """Reads the database, asks AWS, and changes nothing in either. Ray need not run."""
    if config.cloud != "aws":
        raise UsageError(
            f"--dry-run shows what would be done at AWS; cloud {config.cloud} has nothing to show."
        )
    engine_and_cloud.check(config)
    from boa.clouds.aws.dry_run import dry_run as steps

    cluster, known = _stored(config) if config.data_dir.exists() else ("", [])
    owner = owner_of(cluster or new_cluster(config.data_dir))
    return steps(engine_and_cloud.aws_cloud(config, SteadyClock(), owner, dict), known)


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
