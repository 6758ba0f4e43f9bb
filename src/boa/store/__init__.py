"""The store: everything that must survive a crash, in SQLite or PostgreSQL."""
