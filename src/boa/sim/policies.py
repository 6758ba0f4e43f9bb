"""Which policies there are, and how each of them runs by default."""

from dataclasses import dataclass

from boa.model.cluster import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A policy, with the habits of the system it comes from."""

    policy: Policy
    caps_batch: bool = False
    """Predictions stop at the batch size that the user asked for (Sia)."""
