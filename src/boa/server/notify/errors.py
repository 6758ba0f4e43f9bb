"""Why a notice could not be delivered."""

from boa.errors import BoaError


class NotDelivered(BoaError):
    """It is tried again. Says why, without anything secret."""

    def __init__(self, why: str, *, refused: bool = False) -> None:
        """`refused`: the target is there, and does not take what this one says."""
        super().__init__(why)
        self.refused = refused
