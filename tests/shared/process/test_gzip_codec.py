"""Batches that aiokafka packs by ISA-L are gzip, and those of others are read."""

from __future__ import annotations

import gzip
import sys

import pytest
from aiokafka import codec
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from shared.process import gzip_codec

VALUES = [b'{"job_id": "%d"}' % number for number in range(200)]
HEADER_BYTES = 61
"""Size of the header of a batch of version 2, which is never compressed."""


@pytest.fixture(autouse=True)
def own_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with aiokafka as it is, and leave it as it was."""
    module = sys.modules[DefaultRecordBatchBuilder.__module__]
    for name in gzip_codec.NAMES:
        monkeypatch.setattr(module, name, getattr(codec, name))


def batch() -> bytearray:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=DefaultRecordBatch.CODEC_GZIP,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, value in enumerate(VALUES):
        builder.append(offset, timestamp=1, key=None, value=value, headers=[])
    packed: bytearray = builder.build()
    return packed


def values(packed: bytearray) -> list[bytes]:
    return [record.value for record in DefaultRecordBatch(bytes(packed))]


def test_a_batch_is_packed_by_isal_and_is_gzip() -> None:
    gzip_codec.install()
    packed = batch()
    member = bytes(packed[HEADER_BYTES:])
    assert values(packed) == VALUES
    assert member == gzip_codec.encode(gzip.decompress(member))


def test_a_batch_of_another_client_is_read() -> None:
    packed = batch()
    gzip_codec.install()
    assert values(packed) == VALUES


def test_an_aiokafka_without_the_functions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules[DefaultRecordBatch.__module__], "gzip_decode")
    with pytest.raises(AttributeError, match="aiokafka has no gzip_decode"):
        gzip_codec.install()
