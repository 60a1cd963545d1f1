"""Faults are drawn from seeds, within their bounds."""

from __future__ import annotations

from statistics import mean

from simulator.failslow.faults import LONGEST_S, SEVERITY, SHORTEST_S, Kind, faults_of


def test_a_seed_names_its_faults() -> None:
    assert faults_of("long", 3) == faults_of("long", 3) != faults_of("long", 4)


def test_faults_are_within_their_bounds() -> None:
    kinds: tuple[Kind, ...] = ("long", "short")
    for kind in kinds:
        faults = [fault for seed in range(10) for fault in faults_of(kind, seed)]
        assert all(SHORTEST_S <= f.duration_s <= LONGEST_S or kind == "long" for f in faults)
        assert all(SEVERITY[0] <= fault.slowdown <= SEVERITY[1] for fault in faults)
        assert 0.3 < mean(fault.is_compute for fault in faults) < 0.7


def test_short_faults_last_two_minutes() -> None:
    assert 115 < mean(fault.duration_s for fault in faults_of("short", 1)) < 125
