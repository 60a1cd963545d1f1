"""Gzip of Kafka batches by ISA-L: the same format at a twentieth of the processor time.

aiokafka compresses at level 9 of zlib, which cannot be set. A batch of 23 KB of events takes 490 us
there and 24 us here, is 7 % larger, and unpacks in 16 us instead of 36. Every Kafka client reads
it. See docs/decisions/0085.
"""

from __future__ import annotations

import sys

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from isal import igzip

LEVEL = 1
"""Level 2 has the same speed and size; level 3 takes thrice the time for 1 %."""
NAMES = frozenset({"gzip_encode", "gzip_decode"})


def encode(payload: bytes | bytearray | memoryview) -> bytes:
    """Return the payload as one gzip member."""
    return igzip.compress(payload, LEVEL)


def install() -> None:
    """Have aiokafka pack and unpack batches by ISA-L; further calls change nothing.

    Raises AttributeError where aiokafka has no functions of these names any more.
    """
    for part in (DefaultRecordBatch, DefaultRecordBatchBuilder):
        module = sys.modules[part.__module__]
        if missing := NAMES - vars(module).keys():
            raise AttributeError(f"aiokafka has no {', '.join(sorted(missing))}")
        vars(module).update(gzip_encode=encode, gzip_decode=igzip.decompress)
