"""Shapes of everything that goes over the wire."""
