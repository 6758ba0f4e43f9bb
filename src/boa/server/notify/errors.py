"""Why a notice could not be delivered."""

from boa.errors import BoaError


class NotDelivered(BoaError):
    """It is tried again. Says why, without anything secret."""
