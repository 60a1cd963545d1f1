"""One agent per identity on a machine, whatever its state folder: a copied disk is refused.

An agent listens on an abstract Unix socket, which the kernel gives up with the process. Any process
can read such names and take one that is free, as a worker of a tenant could while no agent runs. So
a name counts only where its holder runs as the agent's own user; else the agent goes on without.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import socket
import struct

from berth_agent.node.credentials.identity import Identity
from berth_agent.node.system.machine import read_boot_id

PEER = struct.Struct("3i")
"""struct ucred of the kernel: pid, uid, gid."""
CONNECT_S = 1.0

log = logging.getLogger(__name__)


class IdentityInUse(Exception):
    """Another agent of this machine has the identity."""


class IdentityClaim:
    """Holds the names of an identity until the end of the process."""

    def __init__(self) -> None:
        self._held: dict[str, socket.socket | None] = {}
        """The sockets by name; None where another user has the name."""

    def hold(self, identity: Identity) -> None:
        """Hold the names of the present identity and no others; a renewal adds the next secret.

        Raises IdentityInUse: another agent holds one; OSError.
        """
        desired = _names(identity)
        for name in desired - self._held.keys():
            self._held[name] = _bound(name, identity.node_id)
        for name in self._held.keys() - desired:
            if (held := self._held.pop(name)) is not None:
                held.close()


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


def _bound(name: str, node_id: str) -> socket.socket | None:
    """Return a socket with the name; None where another user has it. Raises IdentityInUse."""
    claimed = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claimed.bind(name)
        claimed.listen(1)
    except OSError as error:
        claimed.close()
        if error.errno != errno.EADDRINUSE:
            raise
        if _holder(name) != os.getuid():
            log.warning("node %s: another user of this machine has the name of its lock", node_id)
            return None
        raise IdentityInUse(
            f"another agent of this machine works with the identity of node {node_id}, from another"
            " state folder: stop one of them. Is this a copy of its disk, it joins anew: an"
            " operator runs `berth nodes token --pool POOL`, then here `berth-agent join URL"
            " --again --node-id NAME`"
        ) from None
    return claimed


def _holder(name: str) -> int | None:
    """Return the uid of the process that listens on the name; None for one that does not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(CONNECT_S)
        try:
            client.connect(name)
            packed = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
        except OSError:
            return None
    uid: int = PEER.unpack(packed)[1]
    return uid
