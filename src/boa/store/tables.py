"""The tables as queries see them. How they come about is written in `migrations`."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

metadata = MetaData()
CONSTANT = {"constant": True}
"""Marks what is written once: an update leaves it alone."""
CHECKSUM, OF_CONSTANTS = "checksum", "constant_checksum"
"""Columns that tell whether the others are as they were written (`checksums`); null in rows that
are older than they are."""

jobs = Table(
    "jobs",
    metadata,
    Column("number", BigInteger, primary_key=True),
    Column("job_class", Text, nullable=False, info=CONSTANT),
    Column("serial", BigInteger, nullable=False, info=CONSTANT),
    Column("submitted_at", Double, nullable=False, info=CONSTANT),
    Column("spec", Text, nullable=False, info=CONSTANT),
    Column("ended", Boolean, nullable=False),
    Column("record", Text, nullable=False),
    Column(CHECKSUM, BigInteger),
    Column(OF_CONSTANTS, BigInteger, info=CONSTANT),
)
nodes = Table(
    "nodes",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("gone", Boolean, nullable=False),
    Column("charged_from", Double, nullable=False),
    Column("charged_until", Double, nullable=False),
    Column("record", Text, nullable=False),
    Column(CHECKSUM, BigInteger),
)
holds = Table(
    "holds",
    metadata,
    Column("job", BigInteger, primary_key=True),
    Column("node", BigInteger, primary_key=True),
    Column("since", Double, primary_key=True),
    Column("until", Double, nullable=False),
    Column("job_class", Text, nullable=False),
    Column("gpus", BigInteger, nullable=False),
    Column("price", Double, nullable=False),
    Column(CHECKSUM, BigInteger),
)
held_pages = Table(
    "held_pages",
    metadata,
    Column("number", BigInteger, primary_key=True),
    Column("since", Double, nullable=False),
    Column("until", Double, nullable=False),
    Column("holds", BigInteger, nullable=False),
    Column("classes", Text, nullable=False),
    Column("columns", LargeBinary, nullable=False),
    Column(CHECKSUM, BigInteger),
)
"""Holds that have ended, thousands to a row (`pages`): from the first one's beginning until the
last one's end."""
cells = Table(
    "cells",
    metadata,
    Column("job_class", Text, primary_key=True),
    Column("gpu", Text, primary_key=True),
    Column("across", Boolean, primary_key=True),
    Column("width", BigInteger, primary_key=True),
    Column("epoch", BigInteger, primary_key=True),
    Column("seconds", Double, nullable=False),
    Column("units", Double, nullable=False),
    Column("reports", BigInteger, nullable=False),
    Column(CHECKSUM, BigInteger),
)
classes = Table(
    "classes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("document", Text, nullable=False),
    Column(CHECKSUM, BigInteger),
)
events = Table(
    "events",
    metadata,
    Column("number", BigInteger, primary_key=True),
    Column("job", BigInteger),
    Column("record", Text, nullable=False),
    Column(CHECKSUM, BigInteger),
)
meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column(CHECKSUM, BigInteger),
)
samples = Table(
    "samples",
    metadata,
    Column("at", Double, primary_key=True),
    Column("record", Text, nullable=False),
)
points = Table(
    "points",
    metadata,
    Column("job", BigInteger, primary_key=True),
    Column("at", Double, primary_key=True),
    Column("record", Text, nullable=False),
)
tokens = Table(
    "tokens",
    metadata,
    Column("name", Text, primary_key=True),
    Column("record", Text, nullable=False),
    Column(CHECKSUM, BigInteger),
)
audit = Table(
    "audit",
    metadata,
    Column("number", BigInteger, primary_key=True),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column(CHECKSUM, BigInteger),
)
notices = Table(
    "notices",
    metadata,
    Column("number", BigInteger, primary_key=True),
    Column("target", Text, nullable=False, info=CONSTANT),
    Column("waiting", Boolean, nullable=False),
    Column("record", Text, nullable=False),
    Column(CHECKSUM, BigInteger),
)
writer = Table(
    "writer",
    metadata,
    Column("opened", BigInteger, nullable=False),
    Column("commits", BigInteger, nullable=False),
)
"""One row: how often a service has opened the database, and how often the last one has written."""
openings = Table(
    "openings",
    metadata,
    Column("opened", BigInteger, primary_key=True),
    Column("nonce", Text, nullable=False),
    Column("commits", BigInteger, nullable=False),
)
"""A row for each time that a service has opened the database: a random name, and how often that one
has written, once another has followed. By it a data folder knows its store again (`memory`)."""
schema_version = Table("schema_version", metadata, Column("version", Integer, primary_key=True))
