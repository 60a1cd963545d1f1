"""Reads the specification of a job, with command and environment, where admission recorded it.

No read model has them, and admission forgets them when a job ends: its ledger keeps them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from shared.bus.log import Entry, Log
from shared.contracts.admission import ArrayAccepted, JobAdmitted, JobDeferred
from shared.contracts.job_spec import JobSpec
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP
from shared.ledger.record import decode

LEDGER = "admission"
TYPES = frozenset({ArrayAccepted.TYPE, JobAdmitted.TYPE, JobDeferred.TYPE})
BEFORE = 64
"""Records before that of an array's first job in which its acceptance is looked for."""
NONE = msgspec.Raw(b"null")
POLL_S = 1.0
READ_S = 10.0


class SpecEvent(msgspec.Struct):
    """The fields that are read of an event which may hold a specification."""

    tenant: str
    spec: msgspec.Raw = NONE


async def recorded_spec(log: Log, lane: int, subject: str, tenant: str, seq: int) -> JobSpec | None:
    """Return the specification of a tenant's job or array, recorded in record `seq` or just before.

    None where neither topic nor archive has it. Raises TimeoutError after `READ_S`, and the errors
    of the log.
    """
    async with asyncio.timeout(READ_S):
        try:
            async with aclosing(_entries(log, TP(LEDGER, lane), seq)) as entries:
                async for entry in entries:
                    if spec := _spec_in(entry, subject, tenant):
                        return JobSpec.model_validate_json(spec)
        except TailLost:
            return None
    return None


async def _entries(log: Log, tp: TP, seq: int) -> AsyncGenerator[Entry, None]:
    """Yield the records up to the one with this number; a number is never above its offset + 1.

    Records that a reader of the ledger ignores come too: they decide the same of one submission.
    """
    await log.start()
    try:
        end, first = await log.end(tp), max(await log.begin(tp), seq - 1 - BEFORE, 0)
    finally:
        await log.stop()
    feed = await log.feed({tp: first})
    try:
        at = first
        # The end that a broker names may be too low.
        while (polled := await feed.poll(POLL_S)) or at < end:
            for entry in polled.get(tp, []):
                at = entry.offset + 1
                record = decode(entry.value)
                if record is not None and record.seq > seq:
                    return
                yield entry
    finally:
        await feed.close()


def _spec_in(entry: Entry, subject: str, tenant: str) -> bytes | None:
    if entry.value is None or subject.encode() not in entry.value:
        return None
    record = decode(entry.value)
    for event in record.events() if record else ():
        if event.type in TYPES and event.subject == subject:
            content = msgspec.json.decode(event.data, type=SpecEvent)
            if content.tenant == tenant and bytes(content.spec) != bytes(NONE):
                return bytes(content.spec)
    return None
