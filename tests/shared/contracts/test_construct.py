"""Messages that are constructed without validation equal validated ones."""

from __future__ import annotations

from shared.contracts.codec import decode_event, encode_event
from shared.contracts.construct import construct
from shared.contracts.ranking import QueueEntry
from tests.replay.workload import played


def test_a_missing_field_has_its_default() -> None:
    given = {"job_id": "a", "tenant": "red", "submitted_at": 7, "gpus": 2.0}
    entry = construct(QueueEntry, **given)
    assert entry == QueueEntry.model_validate(given)
    assert entry.model_fields_set == given.keys()
    assert entry.model_copy(update={"gpus": 4.0}).gpus == 4.0


def test_every_event_of_a_day_is_encoded_and_decoded_without_loss() -> None:
    types = set()
    for ledger, cell in played().lanes.items():
        for call in cell.calls:
            for fact in call.facts(ledger):
                event, data = fact.event, encode_event(fact.event)
                again = decode_event(event.TYPE, data)
                assert again == event and encode_event(again) == data, f"{fact.id}: {event}"
                types.add(event.TYPE)
    assert {"job.placed.v1", "job.preempted.v1", "queue.changed.v1", "queue.ranked.v1"} <= types
