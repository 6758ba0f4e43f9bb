"""Ways in which a store comes to harm, each by a seeded hand. `damage(rng, scene)` on files alone.

A scene is a data folder of a service that was killed or stopped, with older copies of its store and
another service's.
"""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
TABLES = (
    *("jobs", "nodes", "holds", "cells", "classes", "events", "meta", "samples", "points"),
    *("tokens", "audit"),
)
TEXTS = {
    "jobs": ("spec", "record"),
    "nodes": ("record",),
    "classes": ("document",),
    "events": ("record",),
    "meta": ("value",),
    "samples": ("record",),
    "points": ("record",),
    "tokens": ("record",),
    "audit": ("record",),
}
"""Columns that hold JSON."""
GARBLED = ("", "{", "{}", "null", "[]", '{"x": 1}', "\x01\x02", "NaN", "0")


@dataclass(frozen=True)
class Scene:
    data: Path
    """The data folder that is harmed."""
    older: Path
    """Folder with an older boa.db and its log of changes."""
    other: Path
    """Folder with another service's boa.db."""

    @property
    def db(self) -> Path:
        return self.data / "boa.db"

    @property
    def wal(self) -> Path:
        return self.data / "boa.db-wal"

    @property
    def shm(self) -> Path:
        return self.data / "boa.db-shm"


Damage = Callable[[random.Random, Scene], None]


def _flip(rng: random.Random, path: Path, times: int) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(times if data else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _overwrite(path: Path, at: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _larger(scene: Scene) -> Path:
    """The file that has most of the store in it."""
    files = [path for path in (scene.db, scene.wal) if path.exists()]
    return max(files, key=lambda path: path.stat().st_size)


def flip_one(rng: random.Random, scene: Scene) -> None:
    _flip(rng, _larger(scene), 1)


def flip_many(rng: random.Random, scene: Scene) -> None:
    _flip(rng, _larger(scene), rng.randrange(2, 60))


def flip_the_store(rng: random.Random, scene: Scene) -> None:
    _flip(rng, scene.db, rng.randrange(1, 9))


def zero_a_page(rng: random.Random, scene: Scene) -> None:
    path = _larger(scene)
    pages = max(path.stat().st_size // PAGE, 1)
    for _ in range(rng.randrange(1, 4)):
        _overwrite(path, rng.randrange(pages) * PAGE, bytes(PAGE))


def garble_a_page(rng: random.Random, scene: Scene) -> None:
    path = _larger(scene)
    pages = max(path.stat().st_size // PAGE, 1)
    _overwrite(path, rng.randrange(pages) * PAGE, rng.randbytes(PAGE))


def truncate(rng: random.Random, scene: Scene) -> None:
    path = _larger(scene)
    os.truncate(path, rng.randrange(path.stat().st_size))


def lose_the_tail(rng: random.Random, scene: Scene) -> None:
    path = _larger(scene)
    size = path.stat().st_size
    os.truncate(path, max(size - rng.randrange(1, 9) * PAGE, 0))


def delete_the_log(rng: random.Random, scene: Scene) -> None:
    _remove(scene.wal, *([scene.shm] if rng.random() < 0.5 else []))


def truncate_the_log(rng: random.Random, scene: Scene) -> None:
    if scene.wal.exists() and scene.wal.stat().st_size:
        os.truncate(scene.wal, rng.randrange(scene.wal.stat().st_size))


def garble_the_log(rng: random.Random, scene: Scene) -> None:
    if scene.wal.exists() and scene.wal.stat().st_size:
        _flip(rng, scene.wal, rng.randrange(1, 20))


def garble_the_index_of_the_log(rng: random.Random, scene: Scene) -> None:
    scene.shm.write_bytes(rng.randbytes(32768))


def put_an_older_one_back(rng: random.Random, scene: Scene) -> None:
    _remove(scene.db, scene.wal, scene.shm)
    for file in scene.older.iterdir():
        shutil.copy(file, scene.data)


def put_an_older_one_back_without_its_log(rng: random.Random, scene: Scene) -> None:
    _remove(scene.db, scene.wal, scene.shm)
    shutil.copy(scene.older / "boa.db", scene.data)


def put_an_older_one_under_a_newer_log(rng: random.Random, scene: Scene) -> None:
    shutil.copy(scene.older / "boa.db", scene.data)


def put_an_older_one_back_and_lose_the_mark(rng: random.Random, scene: Scene) -> None:
    put_an_older_one_back(rng, scene)
    _remove(scene.data / "store.mark")


def swap_with_another_service(rng: random.Random, scene: Scene) -> None:
    _remove(scene.db, scene.wal, scene.shm)
    shutil.copy(scene.other / "boa.db", scene.data)


def empty(rng: random.Random, scene: Scene) -> None:
    scene.db.write_bytes(b"")
    if rng.random() < 0.5:
        _remove(scene.wal, scene.shm)


def remove(rng: random.Random, scene: Scene) -> None:
    _remove(scene.db)
    if rng.random() < 0.5:
        _remove(scene.wal, scene.shm)


def fill_with_noise(rng: random.Random, scene: Scene) -> None:
    _remove(scene.wal, scene.shm)
    scene.db.write_bytes(rng.randbytes(rng.randrange(1, 100_000)))


def damage_the_head(rng: random.Random, scene: Scene) -> None:
    _overwrite(scene.db, rng.randrange(0, 100), rng.randbytes(rng.randrange(1, 40)))


def _sql(scene: Scene, *statements: tuple[str, tuple[object, ...]]) -> None:
    connection = sqlite3.connect(scene.db, isolation_level=None)
    try:
        for statement, values in statements:
            connection.execute(statement, values)
    finally:
        connection.close()


def _keys(scene: Scene, table: str) -> list[int]:
    connection = sqlite3.connect(scene.db)
    try:
        return [row[0] for row in connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
    finally:
        connection.close()


def delete_rows(rng: random.Random, scene: Scene) -> None:
    table = rng.choice(("jobs", "jobs", *TABLES))
    keys = _keys(scene, table)
    chosen = rng.sample(keys, min(rng.randrange(1, 4), len(keys)))
    _sql(scene, *((f"DELETE FROM {table} WHERE rowid = ?", (key,)) for key in chosen))


def delete_the_last_jobs(rng: random.Random, scene: Scene) -> None:
    last = _keys(scene, "jobs")[-rng.randrange(1, 4) :]
    _sql(scene, *(("DELETE FROM jobs WHERE number = ?", (key,)) for key in last))


def delete_all_rows(rng: random.Random, scene: Scene) -> None:
    _sql(scene, (f"DELETE FROM {rng.choice(('jobs', 'nodes', 'meta', 'writer'))}", ()))


def delete_a_setting(rng: random.Random, scene: Scene) -> None:
    kept = ("money", "tally", "totals", "plan")
    key = rng.choice(("cluster", "secret", "serials", "clock", *kept))
    _sql(scene, ("DELETE FROM meta WHERE key = ?", (key,)))


def garble_a_record(rng: random.Random, scene: Scene) -> None:
    table = rng.choice(sorted(TEXTS))
    keys = _keys(scene, table)
    if keys:
        text, column = rng.choice(GARBLED), rng.choice(TEXTS[table])
        set_it = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
        _sql(scene, (set_it, (text, rng.choice(keys))))


def garble_a_number(rng: random.Random, scene: Scene) -> None:
    column = rng.choice(("serial", "submitted_at", "ended"))
    value = rng.choice((-1, 7, "x", 1e300))
    key = rng.choice(_keys(scene, "jobs"))
    _sql(scene, (f"UPDATE jobs SET {column} = ? WHERE number = ?", (value, key)))


def drop_a_table(rng: random.Random, scene: Scene) -> None:
    _sql(scene, (f"DROP TABLE {rng.choice((*TABLES, 'writer', 'openings', 'schema_version'))}", ()))


def damage_an_index(rng: random.Random, scene: Scene) -> None:
    """Its pages are zeroed, once everything is in the one file."""
    connection = sqlite3.connect(scene.db, isolation_level=None)
    query = "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND rootpage > 0"
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        roots = [row[0] for row in connection.execute(query)]
    finally:
        connection.close()
    _overwrite(scene.db, (rng.choice(roots) - 1) * PAGE, bytes(PAGE))


def cut_an_index_loose(rng: random.Random, scene: Scene) -> None:
    """An index that lacks a row."""
    connection = sqlite3.connect(scene.db, isolation_level=None)
    try:
        connection.execute("PRAGMA writable_schema = ON")
        old = "SELECT sql FROM sqlite_master WHERE name = 'jobs_by_end'"
        sql = connection.execute(old).fetchone()[0]
        change = "UPDATE sqlite_master SET sql = ? WHERE name = 'jobs_by_end'"
        connection.execute(change, (f"{sql} WHERE number <> 3",))
    finally:
        connection.close()


def close_it(rng: random.Random, scene: Scene) -> None:
    scene.db.chmod(rng.choice((0o000, 0o400, 0o644, 0o777)))


def put_a_folder_in_its_place(rng: random.Random, scene: Scene) -> None:
    _remove(scene.db, scene.wal, scene.shm)
    scene.db.mkdir()


def put_a_link_in_its_place(rng: random.Random, scene: Scene) -> None:
    _remove(scene.wal, scene.shm)
    notes = scene.data / "notes"
    notes.write_text("somebody's notes\n" * 100)
    target = rng.choice((scene.data / "nothing", scene.db, Path("/dev/zero"), notes))
    scene.db.unlink()
    scene.db.symlink_to(target)


def put_a_pipe_in_its_place(rng: random.Random, scene: Scene) -> None:
    _remove(scene.db, scene.wal, scene.shm)
    os.mkfifo(scene.db)


def put_a_folder_in_place_of_the_log(rng: random.Random, scene: Scene) -> None:
    _remove(scene.wal, scene.shm)
    rng.choice((scene.wal, scene.shm)).mkdir()


def damage_the_mark(rng: random.Random, scene: Scene) -> None:
    mark = scene.data / "store.mark"
    if rng.random() < 0.3:
        _remove(mark)
    else:
        _flip(rng, mark, rng.randrange(1, 30))


def nothing(rng: random.Random, scene: Scene) -> None:
    """Unharmed: it has to come up."""


DAMAGES: dict[str, Damage] = {
    made.__name__.replace("_", " "): made
    for made in (
        *(flip_one, flip_many, flip_the_store, zero_a_page, garble_a_page, truncate),
        *(lose_the_tail, delete_the_log, truncate_the_log, garble_the_log),
        *(garble_the_index_of_the_log, put_an_older_one_back),
        *(put_an_older_one_back_without_its_log, put_an_older_one_under_a_newer_log),
        *(put_an_older_one_back_and_lose_the_mark, swap_with_another_service, empty, remove),
        *(fill_with_noise, damage_the_head, delete_rows, delete_the_last_jobs, delete_all_rows),
        *(delete_a_setting, garble_a_record, garble_a_number, drop_a_table, damage_an_index),
        *(cut_an_index_loose, close_it, put_a_folder_in_its_place, put_a_link_in_its_place),
        *(put_a_pipe_in_its_place, put_a_folder_in_place_of_the_log, damage_the_mark, nothing),
    )
}


def drawn(seed: int, count: int) -> Iterable[tuple[int, str]]:
    """Trials by number: every kind once before any comes again, in a seeded order."""
    names = sorted(DAMAGES)
    rng = random.Random(seed)
    for number in range(count):
        if number % len(names) == 0:
            rng.shuffle(names)
        yield number, names[number % len(names)]
