"""Inputs that were set aside and are decided again: read from where they lie, under a new id."""

from __future__ import annotations

import hashlib

from shared.bus.gather import Batch
from shared.bus.log import Log, fetch
from shared.contracts.base import Command
from shared.contracts.rejected import InputQuarantined, InputRetried, InputRetryRequested
from shared.contracts.topics import LEDGERS
from shared.ledger.decider import Decision, Input
from shared.ledger.errors import TailLost
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.ledger.record import decode

FETCH_S = 5.0
LOST_MOST = 100
"""Records of lost appends that may lie before one, for each time that it is looked for."""


class Retries:
    """Finds what a request to decide an input again is about."""

    def __init__(self, client: Log, tp: TP, decoder: InputDecoder) -> None:
        self._client = client
        self._tp = tp
        self._decoder = decoder

    async def expand(self, batch: Batch) -> tuple[Batch, list[Decision]]:
        """Return the batch up to the first request, with its inputs, and the event behind them."""
        for index, record in enumerate(batch.records):
            for item in record.inputs:
                if self._is_own(item):
                    inputs = await self._inputs(item)
                    upto = Batch(batch.locals, batch.records[: index + 1], tuple(inputs or ()))
                    return upto, [self._event(item, inputs)]
        return batch, []

    def _is_own(self, item: Input) -> bool:
        place = f"{self._tp.topic}/{self._tp.partition}/"
        message = item.message
        return isinstance(message, InputRetryRequested) and message.input_id.startswith(place)

    def _event(self, item: Input, inputs: list[Input] | None) -> Decision:
        assert isinstance(item.message, InputRetryRequested)
        outcome = "decided" if inputs is not None else "not_retained"
        event = InputRetried.model_validate({"input_id": item.message.input_id, "outcome": outcome})
        return item.decision(event)

    async def _inputs(self, request: Input) -> list[Input] | None:
        """Return the inputs under new ids; None if their bytes are no longer retained."""
        assert isinstance(request.message, InputRetryRequested)
        input_id = request.message.input_id
        aside = await self._quarantined(input_id)
        if aside is None or aside.topic == "local":
            return None
        value = await self._value(TP(aside.topic, aside.partition), aside)
        if value is None:
            return None
        inputs = self._decode(TP(aside.topic, aside.partition), aside.offset, value)
        for item in inputs:
            if self._is_own(item):
                return await self._inputs(item)
        return [
            item._replace(id=input_id) if isinstance(item.message, Command) else item
            for item in inputs
        ]

    def _decode(self, tp: TP, offset: int, value: bytes) -> list[Input]:
        if tp.topic not in LEDGERS:
            return self._decoder.decode_plain(tp, offset, value)
        record = decode(value)
        if record is None:
            return []
        return self._decoder.decode_ledger(Accepted(tp.topic, tp.partition, offset, record))

    async def _quarantined(self, input_id: str) -> InputQuarantined | None:
        """Return the event of this id in the own ledger."""
        seq, index = (int(part) for part in input_id.split("/")[2:])
        for entry in await self._read(self._tp, seq - 1, LOST_MOST):
            record = decode(entry[1])
            if record is None or record.seq != seq:
                continue
            facts = Accepted(self._tp.topic, self._tp.partition, entry[0], record).facts(own=True)
            event = facts[index].event if index < len(facts) else None
            if isinstance(event, InputQuarantined):
                return event
        return None

    async def _value(self, tp: TP, aside: InputQuarantined) -> bytes | None:
        for offset, value in await self._read(tp, aside.offset, 1):
            if offset == aside.offset and hashlib.sha256(value).hexdigest() == aside.sha256:
                return value
        return None

    async def _read(self, tp: TP, offset: int, most: int) -> list[tuple[int, bytes]]:
        try:
            entries = await fetch(self._client, tp, max(offset, 0), most, FETCH_S)
        except TailLost:
            return []
        return [(entry.offset, entry.value or b"") for entry in entries]
