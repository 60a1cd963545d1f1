"""Changes of a policy's health."""

from __future__ import annotations

import numpy as np

from services.priority.core.ranking.degradation import degraded_key, report_health
from services.priority.core.ranking.evaluation import PolicyFailure, Ranking
from shared.contracts.ranking import PolicyDegraded, PolicyRestored
from tests.harness.decider import fold
from tests.services.priority.core.lane import PRIORITY
from tests.services.priority.core.queues import queue

FAILURE = PolicyFailure("bad_model", "sha256: differs")
RANKING = Ranking([], np.zeros(0))
DEGRADED = PolicyDegraded(
    pool="p", learned="net", shadow=False, reason="bad_model", detail="sha256: differs"
)


def test_a_failure_is_reported_once() -> None:
    state = queue()
    assert [d.event for d in report_health(state, "net", FAILURE)] == [DEGRADED]
    fold(PRIORITY, state, [DEGRADED])
    assert list(report_health(state, "net", FAILURE)) == []


def test_a_policy_that_works_again_is_reported_once() -> None:
    state = queue()
    assert list(report_health(state, "net", RANKING)) == [], "it never failed"
    fold(PRIORITY, state, [DEGRADED])
    (decision,) = report_health(state, "net", RANKING)
    assert decision.event == PolicyRestored(pool="p", learned="net", shadow=False)


def test_a_shadow_has_a_health_of_its_own() -> None:
    state = fold(PRIORITY, queue(), [DEGRADED])
    (decision,) = report_health(state, "net", FAILURE, shadow=True)
    assert isinstance(decision.event, PolicyDegraded) and decision.event.shadow
    assert degraded_key("net", shadow=True) != degraded_key("net", shadow=False)
