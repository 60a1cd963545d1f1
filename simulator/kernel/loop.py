"""The event loop: facts of an instant, then a ranking, then a round; see `README.md`."""

from __future__ import annotations

from collections.abc import Callable

from simulator.kernel import facts, learned, progress, rounds
from simulator.kernel.codes import HOUR_MS, NEVER
from simulator.kernel.compiled import SOURCES, compiled, entry
from simulator.kernel.shared import shared
from simulator.kernel.state import Floats, PackedRules, PoolState, Sim


@compiled
def advance(pool: PoolState, rules: PackedRules, held: Floats, now: int) -> None:
    """Advance the clock, adding GPU-ms in use within the window, hour by hour.

    GPU time in use also earns back the cost of stops.
    """
    low, high = max(pool.clock_ms, rules.from_ms), min(now, rules.to_ms)
    while low < high:
        if low >= pool.hour_ends_ms:
            pool.hour = (low - rules.from_ms) // HOUR_MS
            pool.hour_ends_ms = rules.from_ms + (pool.hour + 1) * HOUR_MS
        until = min(high, pool.hour_ends_ms)
        held[pool.hour] += pool.used * (until - low)
        low = until
    if pool.loss_spent > 0:
        pool.loss_spent = progress.earn(
            pool.loss_spent, rules.loss_share, progress.milli(pool.used), now - pool.clock_ms
        )
    pool.clock_ms = now


def _program(sources: str) -> Callable[[Sim], None]:
    @entry
    def run(state: Sim) -> None:
        """To the end of the last job."""
        _ = sources
        sim = shared(state)
        pool, rules = sim.pool, sim.rules
        learned.apply_context(sim.theta, sim.hidden, 0.0, 0.0, 0.0, 0.0)
        while pool.done < len(sim.jobs):
            fact_ms = facts.next_fact_ms(sim)
            now = min(fact_ms, pool.round_at_ms)
            if now == NEVER:
                return
            advance(pool, rules, sim.held, now)
            if now == fact_ms:
                facts.apply_facts(sim, now)
            if now == pool.round_at_ms:
                rounds.run_round(sim, now)

    return run


run = _program(SOURCES)
