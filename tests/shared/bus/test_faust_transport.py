"""What of Faust's transport is changed."""

from __future__ import annotations

from shared.bus.faust_transport import LedgerConsumer


async def test_faust_calls_no_input_dead_because_its_records_reach_no_stream() -> None:
    # Its own asks for the assignment first, which a consumer without an app does not have: under
    # load it wrote an error per input every few minutes.
    consumer = LedgerConsumer.__new__(LedgerConsumer)
    await consumer.verify_all_partitions_active()
