"""View → policy → decision → allocations, with the reasons."""
