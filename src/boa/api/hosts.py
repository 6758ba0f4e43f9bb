"""Hosts that only this machine itself can reach: server and client must agree on them."""


def is_loopback(host: str) -> bool:
    """Whether a name or an address is one that only this machine itself can reach."""
    from ipaddress import ip_address  # which most commands do without

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
