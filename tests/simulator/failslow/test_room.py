"""Gains of a gang by the next free node of a full pool, and by a swap."""

from __future__ import annotations

import pytest

from simulator.failslow.faults import DrawnFault
from simulator.failslow.room import (
    CHECKPOINT_S,
    GANG_NODES,
    MIGRATION_S,
    POOL_NODES,
    FullPool,
    lost_nodes_s,
    removed,
)

FAULT = DrawnFault(10_000.0, 1.0, is_compute=True)
DUE_S = 12 + 2 * MIGRATION_S


def test_a_gang_that_stays_loses_the_time_of_all_its_nodes() -> None:
    assert lost_nodes_s(FAULT, "stays", [100.0]) == GANG_NODES * 5000


def test_the_job_that_gets_the_slow_node_loses_the_time_of_one() -> None:
    gang_s = GANG_NODES * (0.5 * (DUE_S + 100) + MIGRATION_S)
    slow_s = 0.5 * (10_000 - DUE_S - 100 - MIGRATION_S)
    assert lost_nodes_s(FAULT, "next free node", [500.0, 100.0]) == pytest.approx(gang_s + slow_s)


def test_a_swap_does_not_wait_and_stops_a_second_job() -> None:
    at_once_s = lost_nodes_s(FAULT, "next free node", [0.0])
    swapped_s = lost_nodes_s(FAULT, "swap", [500.0])
    assert swapped_s == pytest.approx(at_once_s + MIGRATION_S + CHECKPOINT_S / 2)


def test_a_fault_that_ends_before_a_node_is_free_is_endured() -> None:
    assert lost_nodes_s(FAULT, "next free node", [20_000.0]) == GANG_NODES * 5000


def test_a_swap_is_worth_it_in_small_pools_of_long_jobs_alone() -> None:
    seeds = range(1000, 1010)
    for nodes in POOL_NODES:
        pool = FullPool(nodes, 600.0)
        assert removed(pool, "next free node", seeds) > removed(pool, "swap", seeds)
    rare = FullPool(POOL_NODES[0], 28_800.0)
    assert removed(rare, "next free node", seeds) < removed(rare, "swap", seeds)
