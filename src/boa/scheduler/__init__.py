"""The scheduler, pure: a state and what was said go in, decisions come out."""
