"""Terms of a node's lease, and the silence after which nothing of the node can be alive.

The inequality behind `silence_bound_ms`: a heartbeat that placement has read was sent before, so
its deadline ends at most `clock_rate_bound * stop_after_s` after the reading, and `kill_s` later
the last worker is dead, by any two clocks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from shared.contracts.agents import Terms
from shared.contracts.nodes import Backend
from shared.contracts.pools import PoolConfigured

KEEP = "keep"
IN_EXECUTOR: frozenset[Backend] = frozenset({"virtual", "process"})
"""Backends whose workers an executor holds itself: its `lease_s` is their `stop_after_s`."""
ENGINES: frozenset[Backend] = frozenset({"slurm", "kubernetes", "ray"})
"""Backends of which an engine of the site holds the workers: they run on without Berth."""
ENGINE_TERMS_ID = "engine"
"""Id of the terms of nodes of engines: they never change, and no silence of one is a proof."""
IN_EXECUTOR_LEASES = 2.0
"""Leases of silence after which a node inside an executor is lost."""


class PoolTerms(NamedTuple):
    """Present terms of a pool: of nodes with an agent, and of those inside an executor.

    `terms_id` is the place in placement's ledger at which their values changed last, so terms that
    return to earlier values have another id.
    """

    agent: Terms
    in_executor: Terms

    def of(self, backend: Backend) -> Terms:
        """Return the terms of nodes of this backend."""
        if backend in ENGINES:
            return self.agent.model_copy(update={"terms_id": ENGINE_TERMS_ID, "stop_after_s": None})
        return self.in_executor if backend in IN_EXECUTOR else self.agent


def fold_terms(old: PoolTerms | None, pool: PoolConfigured, seq: int, index: int) -> PoolTerms:
    """Return the terms after a PoolConfigured at that place of placement's ledger."""
    terms_id = f"{seq}.{index}"
    agent = Terms(
        terms_id=terms_id,
        stop_after_s=None if pool.stop_after_s == KEEP else pool.stop_after_s,
        heartbeat_s=pool.heartbeat_s,
        request_timeout_s=pool.request_timeout_s,
        reconnect_s=pool.reconnect_s,
    )
    in_executor = Terms(
        terms_id=terms_id,
        stop_after_s=pool.lease_s,
        heartbeat_s=pool.lease_s / 10,
        request_timeout_s=pool.lease_s / 10,
        reconnect_s=pool.lease_s / 10,
    )
    if old is None:
        return PoolTerms(agent, in_executor)
    return PoolTerms(_changed(old.agent, agent), _changed(old.in_executor, in_executor))


def _changed(old: Terms, new: Terms) -> Terms:
    """Return the old terms if the new ones differ in their id alone."""
    return old if new.model_copy(update={"terms_id": old.terms_id}) == old else new


def silence_bound_ms(pool: PoolConfigured, backend: Backend, stop_after_s: float | None) -> float:
    """Return the ms of silence after which such a node is lost; infinite if workers are kept."""
    if stop_after_s is None:
        return math.inf
    if backend in IN_EXECUTOR:
        return IN_EXECUTOR_LEASES * stop_after_s * 1000
    return (pool.clock_rate_bound * (stop_after_s + pool.kill_s) + pool.slack_s) * 1000


def suspicion_bound_ms(pool: PoolConfigured, backend: Backend) -> int:
    """Return the ms of silence after which nothing is placed on such a node."""
    return round((pool.lease_s if backend in IN_EXECUTOR else pool.suspect_after_s) * 1000)


def present_silence_bound_ms(pool: PoolConfigured, backend: Backend) -> float:
    """Return the bound under the present terms; a node that may still use older ones has more."""
    return silence_bound_ms(pool, backend, fold_terms(None, pool, 0, 0).of(backend).stop_after_s)
