"""Which hosts only this machine itself can reach: server and client must agree on it."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a name or an address is one that only this machine itself can reach."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
