"""Tokens by which processes of an allocation are recognised."""

from __future__ import annotations

import secrets
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeTokens:
    """The tokens of a node: `<node>:<installation>:<random>`.

    Nodes of two installations may have one name on one machine, as of a trial beside a cluster:
    without the mark of its installation, the agent of one would kill the workers of the other.
    """

    node_id: str
    installation: str
    """Mark of its installation; empty on a node that joined before there were any."""

    @property
    def prefix(self) -> str:
        """The beginning of this node's tokens, which those of another of its name do not share."""
        mark = f"{self.installation}:" if self.installation else ""
        return f"{self.node_id}:{mark}"

    @property
    def group(self) -> str:
        """Name of the control group below which those of the node's workers are."""
        return "-".join(filter(None, ("berth", self.node_id, self.installation)))

    def new(self) -> str:
        return f"{self.prefix}{secrets.token_hex(16)}"

    def is_own(self, token: str) -> bool:
        """Return whether a token may be of this node, as one without a mark may."""
        node_id, _, rest = token.partition(":")
        mark, _, _ = rest.rpartition(":")
        return node_id == self.node_id and mark in ("", self.installation)
