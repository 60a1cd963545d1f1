"""The fold of fail-slow's own ledger."""

from __future__ import annotations

import pytest

from services.failslow.core.decide import FailSlow
from services.failslow.core.evolve import FOLDS
from shared.contracts.attempts import JobSucceeded
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.faults import FaultCleared, FaultDismissed
from shared.contracts.rejected import InputRejected
from tests.contracts.event_folds import assert_folds_every_type_of, assert_folds_take_their_types
from tests.harness.decider import fold, given
from tests.services.failslow.core.test_decide import FAULT, suspected
from tests.services.failslow.gangs import POOL, gang, watched

FAILSLOW = FailSlow()
ANSWER = {"command_id": "c1", "command_type": "fault.dismiss.v1", "of": FAULT}
WRITTEN = (
    POOL,
    watched(gang()),
    suspected(),
    FaultCleared(fault_id=FAULT, job_id="j1", reason="recovered"),
    FaultDismissed(fault_id=FAULT, job_id="j1", false_alarm=True),
    CommandAccepted(**ANSWER),
    CommandRefused(**ANSWER, reason="unknown_fault"),
    InputRejected(topic="commands", partition=0, offset=1, reason="not JSON", sha256="0" * 64),
)
"""One event of each type in the failslow ledger."""


def test_every_event_type_of_the_ledger_has_a_fold_and_no_other_has() -> None:
    assert_folds_every_type_of("failslow", FOLDS)


def test_each_fold_takes_the_type_that_it_stands_beside() -> None:
    assert_folds_take_their_types(FOLDS)


@pytest.mark.parametrize("event", WRITTEN, ids=lambda event: event.TYPE)
def test_an_event_of_every_type_is_folded(event: Event) -> None:
    fold(FAILSLOW, given(FAILSLOW), [event])


def test_an_unknown_type_raises() -> None:
    with pytest.raises(TypeError, match=r"unknown type in the failslow ledger: job\.succeeded\.v1"):
        fold(FAILSLOW, given(FAILSLOW), [JobSucceeded(job_id="j1", tenant="acme", attempt=1)])


def test_a_job_placed_anew_in_the_same_batch_stays_watched() -> None:
    again = watched(gang(attempt=2)).model_copy(update={"ended": ("j1",)})
    state = given(FAILSLOW, POOL, watched(gang(attempt=1)), again)
    assert state.gangs["j1"].attempt == 2


def test_a_fault_of_an_earlier_attempt_leaves_the_present_gang_alone() -> None:
    state = given(FAILSLOW, POOL, watched(gang(attempt=2)), suspected("j1/1/2/1"))
    assert state.gangs["j1"].open == {}
    fold(FAILSLOW, state, [FaultDismissed(fault_id="j1/1/2/1", job_id="j1", false_alarm=False)])
    assert state.gangs["j1"].muted == set()
    assert state.faults["j1/1/2/1"].status == "dismissed"
