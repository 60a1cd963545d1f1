"""The changes to Faust's transport."""

from __future__ import annotations

from shared.bus.hosting.faust_transport import LedgerConsumer


async def test_an_input_without_a_stream_is_no_error() -> None:
    # Faust's version would fail here, without an app; under load it logs an error per input.
    consumer = LedgerConsumer.__new__(LedgerConsumer)
    await consumer.verify_all_partitions_active()
