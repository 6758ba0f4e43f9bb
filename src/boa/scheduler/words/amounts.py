"""Time and money as events and explanations word them."""

from boa.units import Seconds, Usd


def seconds(value: Seconds) -> str:
    """1,240 s, 212 s, 3.8 s."""
    return f"{value:,.0f} s" if abs(value) >= 9.95 else f"{value:.1f} s"


def dollars(value: Usd) -> str:
    """$0.31; what is less than a cent keeps two digits: $0.0042."""
    if abs(value) >= 0.00995 or value == 0:
        return f"${value:,.2f}"
    return f"${value:.2g}" if abs(value) >= 1e-4 else "next to nothing"


def per_dollar(value: float) -> str:
    """Seconds that a dollar buys."""
    return f"{value:,.0f} s" if abs(value) >= 9.95 else f"{value:.2g} s"
