from __future__ import annotations

import pytest

from services.admission.core.evolve import FOLDS, evolve
from services.admission.core.state import AdmissionState
from shared.contracts.admission import ArrayCancelRequested, JobRejected
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted
from shared.ledger.decider import Fact
from tests.contracts.event_folds import assert_folds_every_type_of, assert_folds_take_their_types
from tests.contracts.fixture_events import event_of_no, events_of_ledger
from tests.harness.decider import AT
from tests.services.admission.core.cases import ADMISSION, cancel, pool, submit, when

EVENTS = events_of_ledger("admission")


def fold(state: AdmissionState, event: Event) -> None:
    evolve(state, Fact(event, "admission", 0, 1, 0, AT))


def test_every_event_type_of_the_ledger_has_a_fold_and_no_other_has() -> None:
    assert_folds_every_type_of("admission", FOLDS)


def test_each_fold_takes_the_type_that_it_stands_beside() -> None:
    assert_folds_take_their_types(FOLDS)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.TYPE)
def test_a_recorded_event_of_every_type_is_folded(event: Event) -> None:
    state = pool()
    if isinstance(event, ArrayCancelRequested):
        when(state, submit(event.job_id, size=2))
    if isinstance(event, JobRejected):
        event = event.model_copy(update={"digest": "ab" * 16})
    fold(state, event)


def test_an_event_of_another_ledger_raises() -> None:
    with pytest.raises(TypeError, match="unknown type"):
        fold(pool(), event_of_no("admission"))


def test_an_answer_is_remembered_and_is_no_longer_pending() -> None:
    state = pool()
    when(state, submit("a", size=2))
    item = cancel("a")
    fold(state, CommandAccepted(command_id=item.id, command_type="job.cancel.v1"))
    assert item.id in state.answered
    assert list(ADMISSION.decide(state, [item], AT)) == []
