"""Addresses of a stack: which are accepted, and what is said of the others."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from infra.machine.process import free_ports
from infra.supervisor import listening
from infra.supervisor.listening import API_PORT, BadAddress, Listen, parse_listen


@pytest.fixture
def port() -> int:
    """Return a free port, with a free one after it."""
    for free in free_ports(20):
        with suppress(OSError), socket.create_server(("127.0.0.1", free + 1)):
            return free
    raise AssertionError("none of 20 free ports has a free one after it")


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_an_address_has_the_port_of_the_api_unless_it_names_another() -> None:
    assert listening._parse("berth.example") == Listen("berth.example", API_PORT)
    assert listening._parse("10.0.0.5:9000") == Listen("10.0.0.5", 9000)
    assert listening._parse("[fd00::5]:9000") == Listen("fd00::5", 9000)


def test_the_url_has_the_scheme_and_brackets_around_an_ipv6_address() -> None:
    assert Listen("10.0.0.5").url(9000, tls=True) == "https://10.0.0.5:9000"
    assert Listen("fd00::5").url(9000, tls=True) == "https://[fd00::5]:9000"
    assert Listen().url(9000, tls=False) == "http://127.0.0.1:9000"


@pytest.mark.parametrize("text", ["", ":8443", "a:b", "a/b", "user@host", "host:99999"])
def test_what_is_no_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(BadAddress, match=r"invalid --listen: .*must be HOST or HOST:PORT"):
        parse_listen(text, tls=True)


@pytest.mark.parametrize("text", ["host:0", "host:65535"])
def test_the_port_leaves_room_for_the_one_after_it(text: str) -> None:
    with pytest.raises(BadAddress, match=r"port \d+; must be 1 to 65534"):
        parse_listen(text, tls=True)


@pytest.mark.parametrize("text", ["0.0.0.0:8443", "[::]:8443"])
def test_nodes_cannot_connect_to_the_wildcard(text: str) -> None:
    with pytest.raises(BadAddress, match="name an address or host name of this machine"):
        parse_listen(text, tls=True)


def test_beyond_the_loopback_tls_is_required() -> None:
    with pytest.raises(BadAddress, match=r"--listen 192\.0\.2\.1: .* in the clear; add --tls"):
        parse_listen("192.0.2.1", tls=False)


def test_the_address_must_be_of_this_machine() -> None:
    with pytest.raises(BadAddress, match=r"cannot listen at 192\.0\.2\.1 port 8443"):
        parse_listen("192.0.2.1", tls=True)


def test_a_port_in_use_is_named(taken: int) -> None:
    with pytest.raises(BadAddress, match=f"port {taken} .*two free ports"):
        parse_listen(f"127.0.0.1:{taken}", tls=False)


def test_the_loopback_needs_no_tls_and_no_further_name_in_the_certificate(port: int) -> None:
    listen = parse_listen(f"127.0.0.1:{port}", tls=False)
    assert listen.is_local and listen.names == ()
    assert Listen("::1").names == Listen("localhost").names == ()
    assert Listen("10.0.0.5").names == ("10.0.0.5",)
    assert Listen("127.0.0.2").names == ("127.0.0.2",)


def test_a_name_that_means_the_loopback_here_is_refused(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.1.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    with pytest.raises(BadAddress, match=r"berth\.example is 127\.0\.1\.1 on this machine"):
        parse_listen(f"berth.example:{port}", tls=True)
