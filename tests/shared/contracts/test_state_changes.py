"""Each state change is an event of the contracts that names its job and tenant."""

from __future__ import annotations

from typing import get_args

from shared.contracts.codec import event_classes
from shared.contracts.state_changes import ENDS, STATE_CHANGES, StateChange
from shared.contracts.topics import JOB_ENDS


def test_each_state_change_is_a_public_event_of_a_job() -> None:
    assert {*STATE_CHANGES.values()} == {*get_args(StateChange)}
    for kind in STATE_CHANGES:
        event = event_classes()[kind]
        assert event.PUBLIC and {"job_id", "tenant"} <= event.model_fields.keys()


def test_the_ends_are_those_that_other_services_consume_and_a_rejection() -> None:
    assert {STATE_CHANGES[kind] for kind in JOB_ENDS} | {"rejected"} == {*ENDS}
