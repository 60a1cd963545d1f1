"""Webhooks reach public addresses, and networks that the operator names, and no others."""

from __future__ import annotations

import pytest

from services.notifier.core.addresses import is_allowed, is_within, parse_networks


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "1.1.1.1", "2606:2800:220:1::1", "::ffff:1.1.1.1"]
)
def test_a_public_address_is_allowed(address: str) -> None:
    assert is_allowed(address, ())
    assert not is_within(address, ())


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.9.10",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "169.254.170.2",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:10.0.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "feff::1",
        "fc00::1",
        "fec0::1",
        "fd00:ec2::254",
        "ff02::1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "2001:db8::1",
        "localhost",
        "",
    ],
)
def test_an_address_inside_is_not(address: str) -> None:
    assert not is_allowed(address, ())
    assert not is_allowed(address, parse_networks("192.0.2.0/24"))


def test_the_operator_opens_networks() -> None:
    networks = parse_networks("10.0.0.0/8, fd00::/8")
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::1"):
        assert is_allowed(address, networks) and is_within(address, networks)
    assert not is_allowed("192.168.1.1", networks)
    assert is_allowed("1.1.1.1", networks) and not is_within("1.1.1.1", networks)


def test_a_network_has_no_bits_of_a_host() -> None:
    with pytest.raises(ValueError, match="host bits"):
        parse_networks("10.0.0.1/8")
