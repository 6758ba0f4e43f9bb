"""Shapes of a job's terms before it is submitted: what it takes and costs, and what limits do."""

from typing_extensions import TypedDict

from boa.api.estimates import PriorityCost


class Foreseen(TypedDict):
    """A way for a job to go."""

    jct_s: float
    """From its submission to its end, if its GPUs are there."""
    cost_usd: float


class DeadlineTerms(Foreseen):
    """The job with its deadline."""

    kept: bool
    """Whether it is, as far as is known; if not, this is the soonest."""
    extra_usd: float
    """The price of the deadline: what it costs beyond the usual."""
    urgency: float
    """Times as much as its class's that a second of it counts for it."""


class LimitTerms(TypedDict):
    """A limit of the job's own."""

    most: float
    """USD, or seconds."""
    needs: float
    """Amount that it is believed to take to its end."""
    enough: bool


class JobTerms(TypedDict):
    """Terms of a job, as far as its class is known. What it waits for GPUs is not in them."""

    known: bool
    """Whether anything is known of the class; without that, all else is null."""
    usual: Foreseen | None
    """Without a deadline, as a normal job."""
    deadline: DeadlineTerms | None
    max_cost: LimitTerms | None
    max_time: LimitTerms | None
    priorities: list[PriorityCost]
    """Time and cost of each priority, and its cost to all others; empty where it is not known."""
    words: list[str]
    """The same in sentences."""
