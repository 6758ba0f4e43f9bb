"""A token that was taken back stays so, whatever copy of the database is put in its place."""

import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from boa.api.tokens import digest
from boa.model.access import TokenRecord
from boa.model.changes import Changes
from boa.model.service import ServiceConfig
from boa.server.folder import DataFolder
from boa.server.keeping import place, put_back, take_snapshot
from boa.server.opening import open_kept
from boa.store import revoked
from boa.store.base import Store
from live import config
from replacing import KINDS, make

EVE = TokenRecord(name="eve", role="admin", digest=digest("eve's token"), created_at=1.0)
ANN = replace(EVE, name="ann", digest=digest("ann's token"))


@contextmanager
def opened(settings: ServiceConfig, *, accept: bool = False) -> Iterator[Store]:
    with closing(DataFolder(settings.data_dir)) as folder:
        store, saved = open_kept(settings, folder, accept=accept)
        with closing(store):
            folder.belongs_to(saved.meta.get("cluster", "boa-one"))
            yield store


@pytest.fixture
def settings(tmp_path: Path) -> ServiceConfig:
    """A service that has given out two tokens."""
    found = config(tmp_path / "data")
    with opened(found) as store:
        given = {token.name: token for token in (EVE, ANN)}
        store.commit(Changes(meta={"cluster": "boa-one"}, tokens=given))
    return found


def revoke(settings: ServiceConfig) -> None:
    with opened(settings) as store:
        store.commit(Changes(tokens={"eve": replace(EVE, revoked_at=2.0)}))


def good(store: Store) -> list[str]:
    return [token.name for token in store.tokens() if token.good_at(time.time())]


def test_a_snapshot_from_before_it_was_revoked_does_not_bring_it_back(
    settings: ServiceConfig, caplog: pytest.LogCaptureFixture
) -> None:
    where = place(settings.data_dir, None)
    taken = take_snapshot(where, 1_800_000_000.0)
    revoke(settings)
    put_back(where, taken.path.name)
    with caplog.at_level(logging.WARNING), opened(settings) as store:
        assert good(store) == ["ann"]
        (line,) = store.audit(since=0.0, who=None, before=None, limit=10)
        assert (line.entry.who, line.entry.what, line.entry.subject) == (
            *("boa serve", "token revoke"),
            "eve",
        )
    assert "which the store did not know: eve" in caplog.text


def test_nor_does_a_file_that_is_put_back_by_hand_and_accepted(settings: ServiceConfig) -> None:
    older = settings.data_dir.parent / "older.db"
    shutil.copy(settings.data_dir / "boa.db", older)
    revoke(settings)
    shutil.copy(older, settings.data_dir / "boa.db")
    with opened(settings, accept=True) as store:
        assert good(store) == ["ann"]


def test_what_an_earlier_version_has_revoked_is_remembered_from_the_next_start_on(
    settings: ServiceConfig,
) -> None:
    revoke(settings)
    (settings.data_dir / revoked.FILE).unlink()
    with opened(settings):
        assert revoked.known(settings.data_dir) == {EVE.digest}


def test_the_name_is_free_for_another_token(settings: ServiceConfig) -> None:
    revoke(settings)
    with opened(settings) as store:
        store.commit(Changes(tokens={"eve": replace(EVE, digest=digest("a new one"))}))
    with opened(settings) as store:
        assert good(store) == ["ann", "eve"]


@pytest.mark.parametrize("kind", KINDS)
def test_something_else_in_the_place_of_the_file_hinders_nobody(
    settings: ServiceConfig, kind: str
) -> None:
    make(kind, settings.data_dir / revoked.FILE)
    revoke(settings)
    with opened(settings) as store:
        assert good(store) == ["ann"]


def test_a_line_that_a_power_cut_has_torn_costs_that_line_alone(tmp_path: Path) -> None:
    revoked.remember(tmp_path, [EVE.digest])
    with (tmp_path / revoked.FILE).open("ab") as file:
        file.write(b"\n0123\0")
    revoked.remember(tmp_path, [ANN.digest])
    assert revoked.known(tmp_path) == {EVE.digest, ANN.digest}
    assert (tmp_path / revoked.FILE).stat().st_mode & 0o077 == 0
