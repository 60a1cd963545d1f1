"""Terms of a lease, and the silence that proves that nothing lives."""

from __future__ import annotations

import math

from shared.contracts.pools import PoolConfigured
from shared.contracts.terms import fold_terms, present_silence_bound_ms, silence_bound_ms

POOL = PoolConfigured(partition=0, pool="p", lease_s=4.0)


def test_the_default_bound_is_that_of_the_inequality() -> None:
    assert silence_bound_ms(POOL, "agent", 600.0) == (1.25 * (600 + 15) + 5) * 1000


def test_a_node_inside_an_executor_is_lost_after_two_leases() -> None:
    assert silence_bound_ms(POOL, "virtual", 4.0) == 8000
    assert silence_bound_ms(POOL, "process", 4.0) == 8000


def test_kept_workers_are_never_lost_by_silence() -> None:
    assert silence_bound_ms(POOL, "agent", None) == math.inf


def test_terms_are_named_by_the_place_at_which_they_changed() -> None:
    first = fold_terms(None, POOL, 3, 1)
    assert (first.agent.terms_id, first.agent.stop_after_s) == ("3.1", 600.0)
    assert (first.in_executor.terms_id, first.in_executor.stop_after_s) == ("3.1", 4.0)
    same = fold_terms(first, POOL.model_copy(update={"round_ms": 7}), 5, 0)
    assert same == first
    kept = fold_terms(same, POOL.model_copy(update={"stop_after_s": "keep"}), 6, 0)
    assert (kept.agent.terms_id, kept.agent.stop_after_s) == ("6.0", None)
    assert kept.in_executor == first.in_executor
    back = fold_terms(kept, POOL, 8, 0)
    assert back.agent.terms_id == "8.0", "older terms of equal values are other terms"


def test_each_backend_has_its_terms() -> None:
    terms = fold_terms(None, POOL, 1, 0)
    assert terms.of("agent") == terms.agent
    assert terms.of("virtual") == terms.of("process") == terms.in_executor


def test_the_present_bound_is_that_of_the_settings_of_the_backend() -> None:
    assert present_silence_bound_ms(POOL, "virtual") == 8000
    assert present_silence_bound_ms(POOL, "agent") == 773_750


def test_the_terms_of_an_engine_never_change_and_no_silence_is_a_proof() -> None:
    """Its workers run on without Berth: only the engine, or a person, says that they ended."""
    first = fold_terms(None, POOL, 3, 1)
    other = fold_terms(first, POOL.model_copy(update={"stop_after_s": 60.0}), 9, 0)
    assert first.of("slurm") == other.of("slurm")
    assert first.of("slurm").stop_after_s is None
    assert present_silence_bound_ms(POOL, "slurm") == math.inf
