"""The page of protection has a row per set of rules and names what it was measured on."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.parts.policies.preemption import PreemptionCell
from benchmarks.parts.policies.protection_page import render_page
from benchmarks.parts.policies.rule_sets import summary_of

CELL = PreemptionCell("philly", 600.0, 60.0, 0.0, "all rules", "sjf", -0.5, -0.6, 0.0123, 5, True)
ENDLESS = replace(CELL, policy="no price", wait_vs_best_nonpreemptive=None, ended=False)


def test_each_set_of_rules_has_its_row() -> None:
    page = render_page(
        {
            "rules": {cell.policy: summary_of([cell]) for cell in (CELL, ENDLESS)},
            "cells": [CELL.plain(), ENDLESS.plain()],
        }
    )
    assert "| all rules | -50% | -50% | 1.23% | 5 | 0 |" in page
    assert "| no price | - | - | 1.23% | 5 | 1 |" in page
    assert "each: philly;\ns between checkpoints / of a restart: 600/60;\n0% of" in page
