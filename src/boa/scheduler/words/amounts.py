"""Time and money as events and explanations word them."""

from boa.amounts import dollars, duration, rate

seconds = duration

__all__ = ["dollars", "rate", "seconds"]
