"""Whole nodes by price: what jobs gain per second against what a node costs per second."""
