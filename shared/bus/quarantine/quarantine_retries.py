"""Inputs that were quarantined and are decided again: read from where they lie, under a new id."""

from __future__ import annotations

import hashlib

from shared.bus.inputs.gather import Batch, RetriedInput
from shared.bus.logs.log import Log, fetch
from shared.bus.quarantine import parts
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


class QuarantineRetries:
    """Finds the input that a request to retry names."""

    def __init__(self, client: Log, tp: TP, decoder: InputDecoder) -> None:
        self._client = client
        self._tp = tp
        self._decoder = decoder

    async def expand(self, batch: Batch) -> Batch:
        """Return the batch up to the first record with requests, and the inputs requested."""
        for index, record in enumerate(batch.records):
            requests = [item for item in record.inputs if self._is_own(item)]
            if requests:
                retried = [await self._retry(item) for item in requests]
                return Batch(batch.locals, batch.records[: index + 1], tuple(retried))
        return batch

    async def _retry(self, request: Input) -> RetriedInput:
        inputs = await self._inputs(request)
        return RetriedInput(request.id, tuple(inputs or ()), self._event(request, inputs))

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
        quarantined = await self._quarantined(input_id)
        if quarantined is None or quarantined.topic == "local":
            return None
        tp = TP(quarantined.topic, quarantined.partition)
        value = await self._value(tp, quarantined.offset)
        inputs = None if value is None else self._matching(tp, quarantined, value)
        if inputs is None:
            return None
        for item in inputs:
            if self._is_own(item):
                return await self._inputs(item)
        return [
            item._replace(id=input_id) if isinstance(item.message, Command) else item
            for item in inputs
        ]

    def _matching(self, tp: TP, quarantined: InputQuarantined, value: bytes) -> list[Input] | None:
        """Return what was quarantined of the record: all of its inputs, or one part."""
        inputs = self._decode(tp, quarantined.offset, value)
        if hashlib.sha256(value).hexdigest() == quarantined.sha256:
            return inputs
        part = parts.find(
            tp, quarantined.offset, value, inputs, quarantined.message_id, quarantined.sha256
        )
        return None if part is None else [part]

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

    async def _value(self, tp: TP, offset: int) -> bytes | None:
        return next((value for at, value in await self._read(tp, offset, 1) if at == offset), None)

    async def _read(self, tp: TP, offset: int, most: int) -> list[tuple[int, bytes]]:
        try:
            entries = await fetch(self._client, tp, max(offset, 0), most, FETCH_S)
        except TailLost:
            return []
        return [(entry.offset, entry.value or b"") for entry in entries]
