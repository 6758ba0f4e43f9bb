"""Figures that hold where nothing else is said."""

DEFAULT_MAX_GPUS = 64
"""The most GPUs of a job or a class."""
