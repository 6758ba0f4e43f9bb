"""Exit codes by which a run says something. In a file of its own: every training reads it."""

AGAIN = 75
"""EX_TEMPFAIL: it asks to be started again, since it knows what to do better."""
KILLED_AFTER_GRACE = (-9, 137)
"""SIGKILL."""
KILLED = (-15, 143, *KILLED_AFTER_GRACE)
"""How a process ends that does not handle SIGTERM."""
