"""The log of an installation's ledgers, to be read: of a running stack, or of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cli.api.target import data_dir
from cli.errors import BadInput

if TYPE_CHECKING:
    from shared.bus.logs.log import Log

TOPICS = ("access", "placement", "priority")
"""Ledgers that have a pool's past."""


class LedgerLog(NamedTuple):
    """A log, and the wall ms at which what it holds ends."""

    log: Log
    end_ms: int


def open_ledgers(ledgers: Path | None, data: Path | None) -> LedgerLog:
    """Return the log of a folder of `berth simulate --out`, or of the stack with its archive.

    The stack's is read with the rights of `berth verify`: reading alone. Raises BadInput.
    """
    from infra.supervisor.running import load
    from shared.bus.archive.opening import with_archive
    from shared.bus.clock import now_ms
    from shared.bus.logs.kafka import KafkaLog

    if ledgers is not None:
        return _of_folder(ledgers)
    stack = load(data_dir(data))
    return LedgerLog(with_archive(KafkaLog(stack.connection("verify")), stack.archive), now_ms())


def _of_folder(folder: Path) -> LedgerLog:
    from shared.bus.logs.memory import MemoryLog
    from shared.ledger.partition import TP
    from shared.ledger.record import decode
    from simulator.engine.lane import LANE
    from simulator.engine.recording import restore_broker

    try:
        broker = restore_broker(folder, TOPICS)
    except OSError as error:
        raise BadInput(f"--ledgers: {error}") from None
    last = broker.entries(TP("placement", LANE))[-1:]
    record = decode(last[0].value) if last else None
    return LedgerLog(MemoryLog(broker), record.at + 1 if record else 0)
