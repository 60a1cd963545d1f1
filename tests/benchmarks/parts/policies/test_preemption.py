"""Figures of the comparison of preemption by rank."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.parts.policies.preemption import (
    PreemptionCell,
    candidates_without_preemption,
    policies_with_preemption,
    worst_of,
)

CELL = PreemptionCell("t", 600.0, 60.0, 0.0, "p", "fcfs", -0.5, -0.6, 0.01, 5, True)


def test_the_worst_wait_is_a_mean_over_the_costs_of_a_trace_and_share() -> None:
    cells = [
        CELL,
        replace(CELL, restart_s=600.0, wait_vs_best_nonpreemptive=0.3, lost_share=0.02),
        replace(CELL, fixed_share=0.5, wait_vs_best_nonpreemptive=-0.2, max_starts=9),
    ]
    worst = worst_of(cells)
    assert worst == {
        "wait_vs_best_nonpreemptive": -0.1,
        "lost_share": 0.02,
        "max_starts": 9,
        "ended": True,
    }


def test_a_run_that_does_not_end_has_no_wait_and_is_the_worst() -> None:
    endless = replace(CELL, wait_vs_best_nonpreemptive=None, ended=False)
    assert worst_of([endless])["wait_vs_best_nonpreemptive"] is None
    assert worst_of([CELL, endless])["ended"] is False


def test_the_compared_policies_stop_jobs_by_the_rules_and_the_candidates_stop_none() -> None:
    rules = [named.rules for named in policies_with_preemption("berth")]
    assert all(own.preemption and own.preemption_protection == "progress" for own in rules)
    assert not any(named.rules.preemption for named in candidates_without_preemption("berth"))
