"""Scripts that nobody wants to touch, as jobs: what `boa wrap` runs. Standard library only.

Progress is read from what they print, and a stop waits for their own next checkpoint.
"""

from boa.train.wrap.running import Outcome, Wrapped, run

__all__ = ["Outcome", "Wrapped", "run"]
