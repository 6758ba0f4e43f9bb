"""Serving: who may ask, bodies, errors, streams, the dashboard."""
