"""The network addresses that a webhook may be sent to: public ones, and those of the operator."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network

TRANSLATED = tuple(
    IPv6Network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")
)
"""IPv6 networks whose addresses hold an IPv4 address that a gateway of the network connects to:
NAT64 (RFC 6052, 8215), 6to4 (RFC 3056) and Teredo (RFC 4380)."""
ASSIGNED = IPv4Network("192.0.0.0/24")
"""Protocol assignments (RFC 6890), a metadata service among them; Python 3.11 calls them global."""
SITE_LOCAL = IPv6Network("fec0::/10")
"""Addresses of a site (RFC 3879), no longer assigned; Python calls them global."""
REFUSED: tuple[Network, ...] = (ASSIGNED, SITE_LOCAL, *TRANSLATED)


def parse_networks(text: str) -> tuple[Network, ...]:
    """Return the networks of a list like `10.0.0.0/8,fd00::/8`. Raises ValueError."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def is_allowed(address: str, networks: Sequence[Network]) -> bool:
    """Return whether a webhook may be sent to the address.

    An address within IPv6 that stands for an IPv4 address is judged as that one.
    """
    parsed = _parsed(address)
    if parsed is None:
        return False
    if is_within(address, networks):
        return True
    if any(parsed in network for network in REFUSED):
        return False
    return parsed.is_global and not parsed.is_multicast


def is_within(address: str, networks: Sequence[Network]) -> bool:
    """Return whether the address is in one of the networks."""
    parsed = _parsed(address)
    return parsed is not None and any(parsed in network for network in networks)


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed
