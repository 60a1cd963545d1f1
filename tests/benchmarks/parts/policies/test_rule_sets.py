"""Sets of rules leave one out each, and are summed up by their waits and worst losses."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from benchmarks.parts.policies.preemption import PreemptionCell
from benchmarks.parts.policies.rule_sets import ALL, LEFT_OUT, rule_sets, summary_of
from benchmarks.parts.policies.rules import GITTINS

CELL = PreemptionCell("t", 600.0, 60.0, 0.0, ALL, "fcfs", -0.5, -0.6, 0.01, 5, True)


def test_the_first_set_is_that_of_pools_and_each_other_differs_in_one_rule() -> None:
    whole, *others = rule_sets()
    assert whole.rules is not GITTINS.rules and repr(whole.rules) == repr(GITTINS.rules)
    for named in others:
        changed = {
            name
            for name, value in asdict(named.rules).items()
            if name != "theta" and value != getattr(GITTINS.rules, name)
        }
        assert changed == LEFT_OUT[named.name].keys() and len(changed) == 1


def test_waits_are_a_mean_of_ratios_and_losses_the_worst() -> None:
    cells = [CELL, replace(CELL, wait_vs_best_nonpreemptive=1.0, lost_share=0.02, max_starts=9)]
    summary = summary_of(cells)
    assert summary["mean"] == pytest.approx(0.0)
    assert (summary["worst"], summary["lost_share"], summary["max_starts"]) == (1.0, 0.02, 9)


def test_waits_of_runs_that_did_not_end_are_unknown() -> None:
    summary = summary_of([CELL, replace(CELL, wait_vs_best_nonpreemptive=None, ended=False)])
    assert (summary["mean"], summary["worst"], summary["not_ended"]) == (None, None, 1)
