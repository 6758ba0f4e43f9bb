"""Figures that hold where nothing else is said."""

DEFAULT_MAX_GPUS = 64
"""Of a job or a class."""
