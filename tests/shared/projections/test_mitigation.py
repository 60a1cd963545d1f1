"""The breaker and the strictness of a pool are those of the last events."""

from __future__ import annotations

import pytest

from shared.contracts.breaker import BreakerChanged
from shared.contracts.faults import ThresholdsAdjusted
from shared.contracts.nodes import NodeUncordoned
from shared.projections.ledger_events import NotFolded
from shared.projections.mitigation import MitigationRow, fold_mitigation
from tests.shared.ledger_events import ledger_event


def test_the_breaker_is_as_it_changed_last() -> None:
    row = MitigationRow("0", 0)
    opened = BreakerChanged(pool="p", is_open=True, plan_id="x", nodes=20, out_of_use=2, most=2)
    fold_mitigation(row, ledger_event("failslow", opened))
    assert (row.is_open, row.plan_id, row.nodes, row.out_of_use, row.most) == (True, "x", 20, 2, 2)
    closed = opened.model_copy(update={"is_open": False, "plan_id": ""})
    fold_mitigation(row, ledger_event("failslow", closed))
    assert (row.is_open, row.plan_id) == (False, "")


def test_each_kind_of_suspicion_has_its_strictness() -> None:
    row = MitigationRow("0", 0)
    for kind, steps in (("worker", 1), ("job", 2)):
        event = ThresholdsAdjusted(
            pool="p",
            kind=kind,
            steps=steps,
            strictness=1 + 0.25 * steps,
            false_alarms=steps,
            confirmed=0,
        )
        fold_mitigation(row, ledger_event("failslow", event))
    assert (row.worker_strictness, row.job_strictness) == (1.25, 1.5)


def test_other_events_are_not_folded() -> None:
    with pytest.raises(NotFolded):
        fold_mitigation(
            MitigationRow("0", 0), ledger_event("placement", NodeUncordoned(node_id="n"))
        )
