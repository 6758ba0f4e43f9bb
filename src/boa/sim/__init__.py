"""Replay a trace under a policy: virtual time, measured physics, every GPU-second accounted for."""
