"""One agent per identity on a machine, whatever its state folder: a copied disk is refused.

An agent binds an abstract Unix socket, which the kernel gives up with the process. Its name has the
secret of the identity: another user of the machine, as a tenant, cannot take it first. The
namespace of such names is that of the network: in another one the executor refuses the copy.
"""

from __future__ import annotations

import errno
import hashlib
import socket

from berth_agent.node.identity import Identity
from berth_agent.node.machine import read_boot_id


class IdentityInUse(Exception):
    """Another agent of this machine has the identity."""


class IdentityClaim:
    """Holds the names of an identity until `close` or the end of the process."""

    def __init__(self) -> None:
        self._held: dict[str, socket.socket] = {}

    def hold(self, identity: Identity) -> None:
        """Hold the names of the present identity and no others; a renewal adds the next secret.

        Raises IdentityInUse: another agent holds one; OSError.
        """
        wanted = _names(identity)
        for name in wanted - self._held.keys():
            self._held[name] = _bound(name, identity.node_id)
        for name in self._held.keys() - wanted:
            self._held.pop(name).close()

    def close(self) -> None:
        """Give all names up."""
        for held in self._held.values():
            held.close()
        self._held.clear()


def _names(identity: Identity) -> set[str]:
    """Return the names, which the boot's id makes those of this machine."""
    return {
        "\0berth-agent-" + hashlib.sha256(text.encode()).hexdigest()[:40]
        for text in (
            f"{read_boot_id()} {identity.installation} {identity.node_id} {secret}"
            for secret in (identity.secret, identity.next_secret)
            if secret
        )
    }


def _bound(name: str, node_id: str) -> socket.socket:
    claimed = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claimed.bind(name)
    except OSError as error:
        claimed.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise IdentityInUse(
            f"another agent of this machine works with the identity of node {node_id}, from another"
            " state folder: stop one of them. Is this a copy of its disk, it joins anew: an"
            " operator runs `berth nodes token --pool POOL`, then here `berth-agent join URL"
            " --again --node-id NAME`"
        ) from None
    return claimed
