"""The plan in force, what another budget would buy, and why."""
