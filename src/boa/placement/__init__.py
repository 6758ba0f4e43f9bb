"""Widths → GPUs on nodes; what fits; who gets less."""
