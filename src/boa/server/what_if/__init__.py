"""Simulations beside the live service."""
