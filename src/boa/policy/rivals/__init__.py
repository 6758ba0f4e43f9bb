"""Policies that other systems published, each pure."""
