"""Drawn and recorded failures of nodes."""

from __future__ import annotations

import pytest

from simulator.engine.failures import (
    NodeFailure,
    draw_failures,
    failures_from_faults,
    merge_failures,
)


def test_overlapping_faults_of_one_node_are_merged() -> None:
    faults = [
        NodeFailure("a", 0, 5),
        NodeFailure("b", 1, 2),
        NodeFailure("a", 4, 9),
        NodeFailure("a", 10, 11),
    ]
    assert merge_failures(faults) == [
        NodeFailure("a", 0, 9),
        NodeFailure("b", 1, 2),
        NodeFailure("a", 10, 11),
    ]


def test_drawn_failures_have_the_requested_rate() -> None:
    nodes = [f"n{n}" for n in range(200)]
    failures = draw_failures(nodes, 0.0, 1e6, seed=3, mtbf_s=1e5, repair_s=1e3)
    assert len(failures) == pytest.approx(200 * 1e6 / 1.01e5, rel=0.1)
    assert failures == draw_failures(nodes, 0.0, 1e6, seed=3, mtbf_s=1e5, repair_s=1e3)


def test_recorded_faults_are_mapped_to_the_nodes_from_the_beginning() -> None:
    faults = [(f"server{n}", 10.0 * n, 10.0 * n + 5) for n in range(400)]
    nodes = [f"n{n}" for n in range(50)]
    failures = failures_from_faults(faults, nodes, begin_s=1000.0)
    assert {failure.node_id for failure in failures} == set(nodes)
    assert all(
        failure.up_s - failure.down_s == 5 and failure.down_s >= 1000 for failure in failures
    )
