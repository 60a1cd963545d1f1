"""The address at which a stack is reached: of its API, and of its executors of agents."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from infra.security.certificates import HERE
from shared.http.server_settings import is_loopback

LOOPBACK = "127.0.0.1"
API_PORT = 8443
LAST_PORT = 65535


class BadAddress(ValueError):
    """An address that cannot be used; the message names the option and what is allowed."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Host and port of the API; executors of agents have the ports after it.

    Port 0 stands for free ports, which differ from start to start.
    """

    host: str = LOOPBACK
    port: int = 0

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can connect."""
        return is_loopback(self.host)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its certificate beside `HERE`, which each has; 127.0.0.2 is not among them."""
        return () if self.host in HERE else (self.host,)

    def url(self, port: int, tls: bool) -> str:
        """Return the base address of a server on this host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if tls else 'http'}://{host}:{port}"


def parse_listen(text: str, tls: bool) -> Listen:
    """Return the address of `--listen HOST[:PORT]`, which must be one of this machine.

    Raises BadAddress, also for an address of the network without TLS.
    """
    listen = _parse(text)
    if not listen.is_local and not tls:
        raise BadAddress(
            f"--listen {text}: keys, tokens and output would cross the network in the clear; "
            "add --tls, which makes a certificate for this address by the stack's own CA"
        )
    for port in (listen.port, listen.port + 1):
        _check_bindable(text, listen.host, port)
    return listen


def _parse(text: str) -> Listen:
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.netloc != text or parts.username is not None:
        raise BadAddress(f"invalid --listen: {text!r}; must be HOST or HOST:PORT")
    if host in ("0.0.0.0", "::"):
        raise BadAddress(
            f"--listen {text}: no address that a node can connect to; "
            "name an address or host name of this machine"
        )
    port = API_PORT if port is None else port
    if not 0 < port < LAST_PORT:
        raise BadAddress(f"--listen {text}: port {port}; must be 1 to {LAST_PORT - 1}")
    return Listen(host, port)


def _check_bindable(text: str, host: str, port: int) -> None:
    """Raise BadAddress unless a server can listen there, and where the network reaches it."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise BadAddress(
            f"--listen {text}: cannot listen at {host} port {port} ({error.strerror}); "
            "name an address of this machine, and two free ports that follow each other"
        ) from None
    if is_loopback(str(address[0])) and not is_loopback(host):
        raise BadAddress(
            f"--listen {text}: {host} is {address[0]} on this machine, where no node connects; "
            "name an address of the network"
        )
