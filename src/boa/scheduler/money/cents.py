"""Whole cents that add up: the rule of the largest remainder. Pure."""

from collections.abc import Sequence

from boa.units import Usd

CENTS = 100


def cents(amount: Usd) -> int:
    """The nearest whole number of cents."""
    return round(amount * CENTS)


def in_usd(amount: int) -> Usd:
    return amount / CENTS


def shared_out(total: int, weights: Sequence[float]) -> list[int]:
    """`total` cents, shared out by weights that are not negative: they add up to it exactly, and
    each is within a cent of its part. All that is wanting goes to those who lost most by rounding
    down, the first of equals first. Of weights that are all 0 nobody has anything: then `total`
    has to be 0."""
    whole = sum(weights)
    if whole <= 0:
        assert total == 0, total
        return [0] * len(weights)
    exact = [total * (weight / whole) for weight in weights]
    found = [min(int(part), total) for part in exact]
    wanting = total - sum(found)
    by_loss = sorted(range(len(exact)), key=lambda n: (found[n] - exact[n], n))
    for place in range(max(wanting, 0)):
        found[by_loss[place % len(found)]] += 1
    for _ in range(max(-wanting, 0)):  # a last bit of a float too many
        found[max(range(len(found)), key=found.__getitem__)] -= 1
    return found
