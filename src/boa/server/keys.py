"""Keys of the service's own, in files of its data folder and not in the database: who can read a
copy of that can forge no report and open no secret."""

import logging
import re
import secrets
from pathlib import Path

from boa.atomic_file import replace_file
from boa.errors import FileError
from boa.model.changes import Changes
from boa.model.service import ServiceConfig
from boa.plain_file import read_plain
from boa.store.base import Saved, Store
from boa.units import Seconds

REPORT_KEY, SECRET_KEY = "report.key", "secret.key"
META = "secret"
"""Where earlier versions kept the key of report tokens in the database."""
SINCE = "report_tokens_end_since"
_KEY = re.compile(rb"[0-9a-f]{64}\n?")
_log = logging.getLogger("boa.server")


def report_key(folder: Path, store: Store, saved: Saved) -> bytes:
    """The key of report tokens: the same after a restart, for jobs that go on.

    One that an earlier version left in the database is moved. One that is lost is made anew: runs
    that began under the other are refused their reports until they are started again, and train on.
    """
    path, before = folder / REPORT_KEY, saved.meta.get(META)
    key = _read(path)
    if key is None:
        key = before if isinstance(before, str) else secrets.token_hex(32)
        try:
            replace_file(path, f"{key}\n", durable=True, private=True)
        except OSError as trouble:
            problem = (trouble.strerror or str(trouble)).lower()
            raise FileError(str(path), problem, "a file that can be written") from None
        running = sum(job.run is not None for job in saved.jobs)
        if before is None and running:
            _log.warning(
                "%s was gone or damaged: reports of the runs that go on (%d) are refused until "
                "they are started again",
                path,
                running,
            )
    if before is not None:
        store.commit(Changes(meta={META: None}))
    return bytes.fromhex(key)


def endless_before(store: Store, saved: Saved, now: Seconds) -> Seconds:
    """Since when all report tokens have an end; those of runs that began earlier have none."""
    since = saved.meta.get(SINCE)
    if since is None:
        since = 0.0 if saved.meta.get(META) is None else now
        store.commit(Changes(meta={SINCE: since}))
    return float(since)


def secret_key_file(config: ServiceConfig) -> Path:
    return config.secret_key_file or config.data_dir / SECRET_KEY


def _read(path: Path) -> str | None:
    """None: it is not there, or damaged."""
    try:
        found = read_plain(path, most=100)
    except FileNotFoundError:
        return None
    except OSError as trouble:
        _log.warning("%s cannot be read: %s", path, trouble.strerror)
        return None
    return found.decode().strip() if _KEY.fullmatch(found) else None
