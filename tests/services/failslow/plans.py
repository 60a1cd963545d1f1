"""`run` and `wake` of the harness without the statements of the next plan, for tests of others."""

from __future__ import annotations

from collections.abc import Sequence

from services.failslow.core.decide import FailSlow
from services.failslow.core.state import FailSlowState
from shared.contracts.base import Event
from shared.contracts.mitigation import MitigationExpected
from shared.ledger.decider import Input
from tests.harness import decider as harness


def run(
    decider: FailSlow, state: FailSlowState, inputs: Sequence[Input], now: int = harness.AT
) -> list[Event]:
    return _others(harness.run(decider, state, inputs, now))


def wake(decider: FailSlow, state: FailSlowState, now: int) -> list[Event]:
    return _others(harness.wake(decider, state, now))


def _others(events: list[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, MitigationExpected)]
