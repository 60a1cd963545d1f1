"""Violations and bounds."""

from __future__ import annotations

from copy import deepcopy

import pytest

from shared.contracts.nodes import NodeUncordoned
from shared.contracts.topics import LEDGERS
from shared.verify.arrays import ArrayCancelRule
from shared.verify.gpus import GpuCapacityRule
from shared.verify.lifecycle import JobLifecycleRule
from shared.verify.llm_lifecycle import LlmLifecycleRule
from shared.verify.llm_limits import BudgetRule
from shared.verify.llm_rows import LlmRowsRule
from shared.verify.marks import fields_of
from shared.verify.poison import QuarantineRule
from shared.verify.releases import ReleaseProofRule
from shared.verify.row_store import RowStore
from shared.verify.rules import Bounds, Rule, Violation, observers
from shared.verify.transfers import TransferRule
from shared.verify.workers import ReadyWorkerRule
from tests.contracts.fixture_events import events_of_ledger
from tests.shared.ledger_events import ledger_event


def test_a_violation_is_printed_as_one_line() -> None:
    violation = Violation("no gap", "placement/0/7/0", "seq 8 is missing")
    assert str(violation) == "no gap: placement/0/7/0: seq 8 is missing"


OF_LEDGERS = (
    ArrayCancelRule(),
    BudgetRule(),
    GpuCapacityRule(),
    JobLifecycleRule({}, Bounds({})),
    LlmLifecycleRule(),
    LlmRowsRule(RowStore(), {}),
    ReadyWorkerRule([]),
    ReleaseProofRule(),
    TransferRule(Bounds({})),
)


@pytest.mark.parametrize("rule", OF_LEDGERS, ids=lambda rule: type(rule).__name__)
def test_a_rule_learns_nothing_from_ledgers_that_it_does_not_name(rule: Rule) -> None:
    before = deepcopy(fields_of([rule]))
    for ledger in set(LEDGERS) - set(rule.LEDGERS):
        for event in events_of_ledger(ledger):
            rule.observe(ledger_event(ledger, event))
    assert fields_of([rule]) == before
    assert not list(rule.finish())
    assert observers([rule], rule.LEDGERS[0]) == [rule]
    assert observers([rule], "access") == []


def test_a_rule_that_names_no_ledger_observes_all() -> None:
    assert observers([QuarantineRule()], "priority") == [QuarantineRule()]


def test_bounds_have_the_events_up_to_their_seq() -> None:
    bounds = Bounds({("placement", 0): 3})
    message = NodeUncordoned(node_id="n1")
    assert bounds.has(ledger_event("placement", message, seq=3))
    assert not bounds.has(ledger_event("placement", message, seq=4))
    assert not bounds.has(ledger_event("placement", message, seq=1, partition=1))
