"""Processes of a run on one machine: its supervisor, warm parents, and what is left over."""
