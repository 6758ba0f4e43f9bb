"""Clouds: rent and release nodes, on this machine, from Ray's autoscaler, or from AWS."""
