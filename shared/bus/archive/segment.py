"""The format of the archive: objects of raw records, and an entry in a chain for each of them.

    <topic>/<partition>/data/<first>-<next>-<sha256[:16]>.zst   frames of records
    <topic>/<partition>/chain/<n>                               entry n, JSON: who makes it first
                                                                has it
    <topic>/<partition>/checked/<n>                             entry n and those before were read
                                                                back

Nothing is ever overwritten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import zstandard

from shared.bus.logs.log import Entry
from shared.ledger.errors import BadArchive
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor

FORMAT = 1
CODEC = "msgpack+zstd"
LEVEL = 3
MOST_FRAME_BYTES = 64 << 20
"""Bound of an unpacked frame: a frame ends behind the record with which it has 1 MiB."""


class Frame(NamedTuple):
    """A part of an object that is unpacked alone: a reader need not unpack what lies before."""

    first: int
    place: int
    length: int


class ArchiveEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entry `n` of the chain of a partition: the records `first` to `next` - 1, in one object."""

    format: int
    topic: str
    partition: int
    n: int
    first: int
    next: int
    before: Cursor
    """Where a reader stands in front of the first record, and `after` where behind the last."""
    after: Cursor
    accepted: int
    ignored: int
    last_at: int
    """Time of the last record at the broker, ms since 1970."""
    codec: str
    object: str
    bytes: int
    raw_bytes: int
    sha256: str
    frames: tuple[Frame, ...]
    previous: str
    """sha256 of entry `n` - 1 as it is stored; empty for the first."""
    writer: str
    made_ms: int

    @property
    def tp(self) -> TP:
        return TP(self.topic, self.partition)


def sha256_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def folder_of(tp: TP) -> str:
    return f"{tp.topic}/{tp.partition}"


def chain_of(tp: TP) -> str:
    return f"{folder_of(tp)}/chain"


def entry_name(tp: TP, n: int) -> str:
    return f"{chain_of(tp)}/{n:09d}"


def checks_of(tp: TP) -> str:
    return f"{folder_of(tp)}/checked"


def check_name(tp: TP, n: int) -> str:
    return f"{checks_of(tp)}/{n:09d}"


def object_name(tp: TP, first: int, end: int, sha256: str) -> str:
    """Return a name with the content in it: a second upload of it has the same bytes."""
    return f"{folder_of(tp)}/data/{first:020d}-{end:020d}-{sha256[:16]}.zst"


def encode_entry(entry: ArchiveEntry) -> bytes:
    return msgspec.json.encode(entry)


def decode_entry(body: bytes, name: str) -> ArchiveEntry:
    """Decode an entry. Raises BadArchive for bytes of no format that this version reads."""
    try:
        entry = msgspec.json.decode(body, type=ArchiveEntry)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadArchive(f"{name}: not an entry of an archive: {error}") from None
    if entry.format != FORMAT or entry.codec != CODEC:
        raise BadArchive(
            f"{name}: format {entry.format} {entry.codec}; this version reads {FORMAT} {CODEC}"
        )
    return entry


def pack_frame(rows: Sequence[Entry]) -> tuple[bytes, int]:
    """Return the packed records and their size before it."""
    raw = msgspec.msgpack.encode(rows)
    packer = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True)
    return packer.compress(raw), len(raw)


def unpack(entry: ArchiveEntry, body: bytes | None, offset: int = 0) -> Iterator[Entry]:
    """Yield the records of an object from `offset` on. Raises BadArchive for other bytes."""
    if body is None:
        raise BadArchive(f"{entry.object}: missing, and entry {entry.n} of {entry.tp.key} names it")
    if sha256_of(body) != entry.sha256:
        raise BadArchive(f"{entry.object}: has another sha256 than entry {entry.n} says")
    unpacker = zstandard.ZstdDecompressor()
    start = max((i for i, frame in enumerate(entry.frames) if frame.first <= offset), default=0)
    for frame in entry.frames[start:]:
        packed = body[frame.place : frame.place + frame.length]
        yield from _rows(entry, unpacker, packed, offset)


def _rows(
    entry: ArchiveEntry, unpacker: zstandard.ZstdDecompressor, packed: bytes, offset: int
) -> Iterator[Entry]:
    try:
        raw = unpacker.decompress(packed, max_output_size=MOST_FRAME_BYTES)
        rows = msgspec.msgpack.decode(raw)
    except (zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise BadArchive(f"{entry.object}: cannot be unpacked: {error}") from None
    for at, key, value, headers, timestamp in rows:
        if at >= offset:
            yield Entry(at, key, value, tuple((name, body) for name, body in headers), timestamp)
