"""Shapes of everything that goes over the wire."""

PATIENCE_S = 30.0
"""How long the service takes at most to answer a request, in seconds of the wall."""
