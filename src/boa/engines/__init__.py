"""Engines: start, rescale and stop jobs for real, as local processes or on Ray."""
