"""Speedups, work, arrivals and rescaling times of job classes, as measured."""
