"""Reads the specification of a job, with command and environment, where admission recorded it.

No read model has them, and admission forgets them when a job ends: its ledger keeps them.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import NamedTuple

import msgspec

from services.gateway.responses.problem import ApiError
from shared.bus.logs.log import Feed, Log
from shared.contracts.admission import ArrayAccepted, JobAdmitted, JobDeferred
from shared.contracts.job_spec import JobSpec
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP
from shared.ledger.record import Record, decode

LEDGER = "admission"
TYPES = frozenset({ArrayAccepted.TYPE, JobAdmitted.TYPE, JobDeferred.TYPE})
AROUND = 64
"""Records before and behind a position that are read: some records of a ledger do not count."""
STRIDE = 8
"""The search for a time goes back by strides that grow so much."""
NONE = msgspec.Raw(b"null")
POLL_S = 1.0
EMPTY_POLLS = 3
READ_S = 10.0
READS = 4
"""Reads at once of one gateway."""
TENANT_READS = 2
RETRY_AFTER = {"Retry-After": "1"}


class SpecEvent(msgspec.Struct):
    """The fields that are read of an event which may hold a specification."""

    tenant: str
    spec: msgspec.Raw = NONE


class SpecPosition(NamedTuple):
    """A position in admission's ledger: record `seq` has the first event of the job.

    `accepted_at` is the time of the record that accepted it, or its array: the same or an earlier
    one.
    """

    lane: int
    seq: int
    accepted_at: int


class SpecReads:
    """Reads specifications, a few at once: each read has a client of the log."""

    def __init__(self, open_log: Callable[[], Log]) -> None:
        self._open_log = open_log
        self._reading: Counter[str] = Counter()

    async def read(self, position: SpecPosition, subject: str, tenant: str) -> JobSpec | None:
        """Return what `recorded_spec` does. Raises ApiError 429 while too many read."""
        with self._reader(tenant):
            return await recorded_spec(self._open_log(), position, subject, tenant)

    @contextmanager
    def _reader(self, tenant: str) -> Iterator[None]:
        if self._reading.total() >= READS or self._reading[tenant] >= TENANT_READS:
            detail = (
                f"specifications: {READS} of a gateway and {TENANT_READS} of a tenant are read at"
                " once; repeat"
            )
            raise ApiError(429, "too_many_reads", detail, headers=RETRY_AFTER)
        self._reading[tenant] += 1
        try:
            yield
        finally:
            self._reading[tenant] -= 1
            if not self._reading[tenant]:
                del self._reading[tenant]


async def recorded_spec(
    log: Log, position: SpecPosition, subject: str, tenant: str
) -> JobSpec | None:
    """Return the specification of a tenant's job or array, recorded at a position or before it.

    None where neither topic nor archive has it. Raises TimeoutError where the broker does not
    deliver, and the errors of the log.
    """
    tp = TP(LEDGER, position.lane)
    async with asyncio.timeout(READ_S):
        try:
            async with _reader_of(log, tp) as reader:
                # A clock of an earlier release may have stepped: then it is near its first job.
                for first in (await reader.find(position), position.seq - 1):
                    async for record in reader.records(first - AROUND, position):
                        if spec := _spec_in(record, subject, tenant):
                            return JobSpec.model_validate_json(spec)
        except TailLost:
            return None
    return None


@asynccontextmanager
async def _reader_of(log: Log, tp: TP) -> AsyncIterator[LedgerReader]:
    await log.start()
    try:
        begin, end = await log.begin(tp), await log.end(tp)
    finally:
        await log.stop()
    feed = await log.feed({tp: begin})
    try:
        yield LedgerReader(feed, tp, begin, end)
    finally:
        await feed.close()


class LedgerReader:
    """Reads records of a ledger from any offset. The end that a broker names may be too low."""

    def __init__(self, feed: Feed, tp: TP, begin: int, end: int) -> None:
        self._feed, self._tp, self._begin, self._end = feed, tp, begin, end

    async def find(self, position: SpecPosition) -> int:
        """Return an offset at most `AROUND` before the first record of the time of the acceptance.

        The time of a ledger never goes back, and a record's number is never above its offset + 1.
        """
        low, high, stride = max(self._begin, min(position.seq, self._end) - 1), self._end, AROUND
        while low > self._begin and await self._time_at(low) >= position.accepted_at:
            low, high, stride = max(self._begin, low - stride), low, stride * STRIDE
        while high - low > AROUND:
            middle = (low + high) // 2
            if await self._time_at(middle) < position.accepted_at:
                low = middle
            else:
                high = middle
        return low

    async def records(self, first: int, position: SpecPosition) -> AsyncGenerator[Record, None]:
        """Yield the records up to the position, and few of a later time than the acceptance.

        Records that a reader of the ledger ignores come too: they decide the same of one
        submission.
        """
        later = 0
        async with aclosing(self._from(first)) as records:
            async for record in records:
                later += record.at > position.accepted_at
                if record.seq > position.seq or later > 2 * AROUND:
                    return
                yield record

    async def _time_at(self, offset: int) -> float:
        """Return the time of the first record from an offset on, ms."""
        async with aclosing(self._from(offset)) as records:
            async for record in records:
                return record.at
        return math.inf

    async def _from(self, first: int) -> AsyncGenerator[Record, None]:
        """Yield the records from an offset on. Raises TimeoutError where none is delivered."""
        at = max(first, self._begin)
        await self._feed.seek(self._tp, at)
        polls = 0
        while polls < EMPTY_POLLS:
            entries = (await self._feed.poll(POLL_S, AROUND)).get(self._tp, [])
            if not entries and at >= self._end:
                return
            polls = 0 if entries else polls + 1
            for entry in entries:
                at = entry.offset + 1
                if (record := decode(entry.value)) is not None:
                    yield record
        raise TimeoutError(f"{self._tp.key} ends at {self._end}, and delivers nothing from {at}")


def _spec_in(record: Record, subject: str, tenant: str) -> bytes | None:
    if subject.encode() not in bytes(record.ev):
        return None
    for event in record.events():
        if event.type in TYPES and event.subject == subject:
            content = msgspec.json.decode(event.data, type=SpecEvent)
            if content.tenant == tenant and bytes(content.spec) != bytes(NONE):
                return bytes(content.spec)
    return None
