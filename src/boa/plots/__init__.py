"""Figures of plans, simulations, traces and services, and the words that tables share with them."""
