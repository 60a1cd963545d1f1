"""Every event folds into the rows of its read models."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from shared.contracts.base import EVENTS
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.ranking import PolicyRestored
from shared.projections.ledger_events import LedgerEvent
from shared.projections.models import ANSWERS, COMMAND, PROJECTIONS, TABLES, projections_of
from tests.shared.ledger_events import AT, ledger_event

FIXTURES = Path(__file__).parents[2] / "contracts/fixtures"


def recorded_event(ledger: str, type_: str) -> LedgerEvent:
    """The fixture of an event, as if it had been read from a ledger."""
    raw = (FIXTURES / f"{type_}.json").read_bytes()
    data = msgspec.json.decode(raw)
    return LedgerEvent(ledger, 3, 7, 0, AT, type_, "subject", data, raw, "", "00-aa")


@pytest.mark.parametrize(("ledger", "type_"), sorted(PROJECTIONS))
def test_every_projected_event_has_a_fold(ledger: str, type_: str) -> None:
    event = recorded_event(ledger, type_)
    for projection in projections_of(event):
        key = projection.key(event)
        row = projection.new_row(key, event)
        projection.fold(row, event)
        assert getattr(row, projection.table.key) == key


@pytest.mark.parametrize(("ledger", "type_"), sorted(PROJECTIONS))
def test_a_projected_event_may_appear_in_that_ledger(ledger: str, type_: str) -> None:
    assert ledger in EVENTS[type_].LEDGERS


@pytest.mark.parametrize("ledger", ["access", "admission", "placement", "failslow", "throttle"])
@pytest.mark.parametrize("type_", sorted(ANSWERS))
def test_the_answers_of_every_ledger_share_one_table(ledger: str, type_: str) -> None:
    event = recorded_event(ledger, type_)
    assert projections_of(event) == (COMMAND,)
    row = COMMAND.new_row(COMMAND.key(event), event)
    COMMAND.fold(row, event)
    assert (row.ledger, row.answers) == (ledger, 1)


def test_other_events_change_no_row() -> None:
    assert projections_of(ledger_event("priority", PolicyRestored(pool="p", learned="net"))) == ()
    cancelled = recorded_event("access", "job.cancelled.v1")
    assert projections_of(cancelled) == ()


def test_rows_of_one_lane_are_keyed_by_lane() -> None:
    event = recorded_event("admission", "quota.changed.v1")
    (quota,) = projections_of(event)
    assert quota.key(event) == f"3/{event.data['tenant']}"
    request = recorded_event("throttle", "llm.queued.v1")
    (llm_request,) = projections_of(request)
    assert llm_request.key(request) == f"3/{request.data['tenant']}/{request.data['request_id']}"


def test_each_read_model_has_one_table() -> None:
    names = [table.name for table in TABLES]
    assert len(set(names)) == len(names) == 24
    assert all(table.key in table.columns for table in TABLES)


def test_events_are_decoded_as_the_codec_would() -> None:
    event = ledger_event("admission", CommandAccepted(command_id="c", command_type="job.submit.v1"))
    assert event.data == json.loads(event.raw)
