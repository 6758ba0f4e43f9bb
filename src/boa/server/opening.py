"""Opening the store of a data folder: whole and as far as the folder knows it, or not at all.

Refused is what has lost anything that somebody was told of. It can be opened knowingly: what is
whole in it goes on, runs, checkpoints and logs of jobs that it does not know are moved away (their
processes end, as those of all runs that nobody knows), and no number is given out again.
"""

import logging
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from boa.clock import SteadyClock
from boa.errors import FileError
from boa.model.access import Caller
from boa.model.changes import Changes
from boa.model.records import Event
from boa.model.service import ServiceConfig
from boa.runtime.assemble import new_cluster
from boa.runtime.audit import entry
from boa.scheduler.state import owner_of
from boa.scheduler.words.sentences import sentence
from boa.server.folder import DataFolder
from boa.server.looking import (
    FORMER,
    Look,
    check_owner,
    forget_restored,
    is_owner,
    is_restored,
    look,
    what_to_do,
)
from boa.store import revoked
from boa.store.backend import Backend
from boa.store.base import Saved, Store
from boa.store.errors import StoreRefused
from boa.store.faults import Fault, Found, listed, ranges
from boa.store.memory import FolderMemory, read_mark, told_by
from boa.store.migrations import MIGRATIONS
from boa.store.salvage import salvage
from boa.store.sql import SqlStore, backend_of
from boa.store.sqlite import Sqlite, parts_of

OF_ITS_OWN = (
    "It is another service's: name a folder of its own for it (--data), or put this one's back "
    "(boa store restore)"
)
MOST_FORMER = 50
"""Names kept that the store had before."""
KEEPER = Caller(name="boa serve")
"""Who does in the audit log what nobody has asked for."""
_log = logging.getLogger("boa.server")


def open_kept(config: ServiceConfig, folder: DataFolder, *, accept: bool) -> tuple[Store, Saved]:
    """The folder's store, and what it has. `accept`: though it has lost something."""
    try:
        store, saved = _opened(config, folder, accept=accept)
    except OSError as trouble:  # another user's quarantine, say
        problem = (trouble.strerror or str(trouble)).lower()
        raise FileError(
            str(trouble.filename or folder.path), problem, "what the service's user may change"
        ) from None
    try:
        _keep_shut(folder, store)
    except BaseException:
        store.close()
        raise
    return store, saved


def _keep_shut(folder: DataFolder, store: Store) -> None:
    """Take tokens back that were so before, though this store does not know of it."""
    tokens, known = store.tokens(), revoked.known(folder.path)
    again = {
        token.name: replace(token, revoked_at=time.time())
        for token in tokens
        if token.revoked_at is None and token.digest in known
    }
    if again:
        _log.warning("tokens that were revoked, which the store did not know: %s", ", ".join(again))
        entries = [entry(KEEPER, "token revoke", name) for name in again]
        store.commit(Changes(tokens=again, audit=entries))
    gone = {token.digest for token in tokens if token.revoked_at is not None}
    revoked.remember(folder.path, gone - known)  # by an earlier version, or on a full disk


def _opened(config: ServiceConfig, folder: DataFolder, *, accept: bool) -> tuple[Store, Saved]:
    mark, backend = read_mark(folder.path), backend_of(config.db)
    try:
        _check_ours(backend)
        known = folder.jobs()
        seen = look(backend, mark, told_by(known, folder.path, mark))
        if seen.faults:
            seen = replace(seen, seen=known)
        else:
            _move_strays(folder, known - seen.seen - seen.found.jobs)
        is_other = bool(seen.found.cluster) and not is_owner(folder.path, seen.found.meta)
        if is_other and (accept or seen.faults):
            other = Fault(kind="foreign", text="the data folder belongs to another database")
            seen = replace(seen, faults=[other, *seen.faults])
        if seen.faults:
            return _open_knowingly(config, folder, backend, seen, accept)
        store: Store = SqlStore(backend, FolderMemory(folder.path), config.history_kept)
        if seen.found.there and seen.found.version < len(MIGRATIONS):
            store = _looked_through(config, folder, backend, store, accept)
    except BaseException:
        backend.close()
        raise
    try:
        check_owner(folder.path, store.load().meta)
        forget_restored(folder.path)
        if mark is None and seen.found.openings and seen.found.cluster:
            # The folder is another one, or has lost its memory: tokens of nodes are not used twice.
            store.commit(Changes(meta=_renewed(seen.found.meta)))
        return store, store.load()
    except BaseException:
        store.close()
        raise


def _check_ours(backend: Backend) -> None:
    """A file that we may not read is not damaged: going on without it would lose what is in it."""
    for part in parts_of(backend.path) if isinstance(backend, Sqlite) else ():
        if part.is_file() and not os.access(part, os.R_OK):
            expected = "a file of the service's user, who may not read it: chown it"
            raise FileError(str(part), "permission denied", expected)


def _move_strays(folder: DataFolder, strays: set[int]) -> None:
    """Runs of jobs that never were. They cost the service nothing, and no job of that number is to
    find them one day."""
    if strays:
        aside = folder.new_quarantine()
        folder.move_away(strays, aside)
        _log.warning("runs %s are of no job that ever was: moved to %s", listed(strays), aside)


def _looked_through(
    config: ServiceConfig, folder: DataFolder, backend: Backend, store: Store, accept: bool
) -> Store:
    """One of an older version, which is now brought up to date."""
    seen = look(backend, read_mark(folder.path), folder.jobs())
    if not seen.faults:
        return store
    store.close()
    backend = backend_of(config.db)
    try:
        return _open_knowingly(config, folder, backend, seen, accept)[0]
    except BaseException:
        backend.close()
        raise


def _open_knowingly(
    config: ServiceConfig, folder: DataFolder, backend: Backend, seen: Look, accept: bool
) -> tuple[Store, Saved]:
    restored = seen.is_whole and is_restored(folder.path, seen.found)
    repairable = seen.is_whole or isinstance(backend, Sqlite)
    if _is_another_service(folder, seen.found):
        raise StoreRefused(backend.where, seen.faults, OF_ITS_OWN)
    if not (accept or restored) or not repairable:
        raise StoreRefused(backend.where, seen.faults, what_to_do(folder.path, seen))
    aside = folder.new_quarantine()
    faults = seen.faults
    if not seen.is_whole:
        assert isinstance(backend, Sqlite)
        salvage(backend.path, aside / "store")
        seen = look(backend, seen.mark, seen.seen)
    own_way = any(fault.kind == "foreign" for fault in faults)
    unknown = seen.seen if own_way else seen.seen - seen.found.jobs
    moved = folder.move_away(unknown, aside)
    store = SqlStore(backend, FolderMemory(folder.path), config.history_kept)
    told = [fault.text for fault in faults]
    if seen.doubtful:
        told.append(
            f"the data folder has lost its memory, so that there may have been more jobs: numbers "
            f"up to {max(seen.doubtful)} are not given out"
        )
    if moved:
        told.append(f"runs, logs and checkpoints of {moved} jobs are in {aside}")
    _write_down(config, folder, store, seen, told)
    forget_restored(folder.path)
    return store, store.load()


def _write_down(
    config: ServiceConfig, folder: DataFolder, store: Store, seen: Look, told: Sequence[str]
) -> None:
    """Numbers that were given up, another name for new nodes, and what has happened."""
    saved = store.load()
    data: dict[str, Any] = {"why": "store", "detail": "; ".join(told)}
    _log.warning("the store was opened knowingly: %s", data["detail"])
    now = SteadyClock(config.speed, saved.meta.get("clock")).now()
    text = sentence("trouble", None, None, data)
    event = Event(at=now, kind="trouble", text=text, job=None, node=None, data=data)
    named = {"cluster": folder.owner or new_cluster(config.data_dir), **saved.meta}
    meta = {"lost_jobs": ranges(seen.lost | seen.doubtful), **_renewed(named)}
    store.commit(Changes(meta=meta, events=[event]))
    folder.belongs_to(meta["cluster"])


def _renewed(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Its name with another last part: tokens of its nodes have not been there. Older ones are kept
    beside it, since the folder has the last of them."""
    former = [*meta.get(FORMER, ()), meta["cluster"]]
    name = f"{owner_of(meta['cluster'])}-{secrets.token_hex(4)}"
    return {"cluster": name, FORMER: former[-MOST_FORMER:]}


def _is_another_service(folder: DataFolder, found: Found) -> bool:
    """Whether its numbers are another service's: none means the same job here, so nothing can be
    gone on with, nor all that is lost be named."""
    name, owner = found.cluster, folder.owner
    return bool(name and owner and owner_of(name) != owner_of(owner))
