"""Nodes of a Ray cluster, brought and taken away by its autoscaler, or simply there."""
