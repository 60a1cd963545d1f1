"""Removes the beginnings of topics that are archived."""

from __future__ import annotations

from collections.abc import Mapping

from kafka import TopicPartition
from kafka.errors import KafkaError

from infra.broker.topics import connect
from shared.ledger.partition import TP
from shared.process.connection import Connection


class NotTrimmed(SystemExit):
    """The broker did not remove the records."""


def trim(connection: Connection, offsets: Mapping[TP, int]) -> None:
    """Remove the records in front of these offsets. Raises NotTrimmed, or NoBroker.

    The broker gives the space back segment by segment, within minutes.
    """
    admin = connect(connection)
    try:
        admin.delete_records({TopicPartition(*tp): offset for tp, offset in offsets.items()})
    except KafkaError as error:
        raise NotTrimmed(f"records were not removed: {error}") from None
    finally:
        admin.close()
