"""The public events that a run has compared, in a few bytes each, so that a mark can keep them."""

from __future__ import annotations

import hashlib

from shared.verify.row_store import RowStore

COMPARED = "compared events"
NAME_BYTES, CONTENT_BYTES = 4, 8
ENTRY_BYTES = NAME_BYTES + CONTENT_BYTES
UNKNOWN = bytes(CONTENT_BYTES)
"""In place of the content of an event that `events` did not hold."""


def content_digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CONTENT_BYTES).digest()


class ComparedEvents:
    """Digests of ids with types, and of contents, in a row for each hundred seqs of a ledger."""

    def __init__(self, kept: RowStore) -> None:
        self._kept = kept
        self._key = ""
        self._row = bytearray()
        """The row of `_key`, which is not stored yet: events come in the order of ids."""

    def add(self, event_id: str, type_: str, content: bytes = UNKNOWN) -> None:
        """Add an event with the digest of its content; `store` ends a number of them."""
        key = _row_key(event_id)
        if key != self._key:
            self.store()
            self._key, self._row = key, bytearray(self._entries(key))
        self._row += _name_digest(event_id, type_) + content

    def store(self) -> None:
        """Store what was added last."""
        if self._key:
            self._kept.put(COMPARED, self._key, (bytes(self._row),))
        self._key = ""

    def content_of(self, event_id: str, type_: str) -> bytes | None:
        """Return the digest of the content, or UNKNOWN; None for an event that was not added."""
        entries, start = self._find(event_id, type_)
        return None if start < 0 else entries[start + NAME_BYTES : start + ENTRY_BYTES]

    def set_content(self, event_id: str, type_: str, content: bytes) -> None:
        """Set the digest of the content of an event that was added."""
        self.store()
        entries, start = self._find(event_id, type_)
        before, after = entries[: start + NAME_BYTES], entries[start + ENTRY_BYTES :]
        self._kept.put(COMPARED, _row_key(event_id), (before + content + after,))

    def _find(self, event_id: str, type_: str) -> tuple[bytes, int]:
        """Return the entries of the row of an event, and where its own begins there; -1: none."""
        entries, name = self._entries(_row_key(event_id)), _name_digest(event_id, type_)
        starts = range(0, len(entries), ENTRY_BYTES)
        return entries, next((n for n in starts if entries.startswith(name, n)), -1)

    def _entries(self, key: str) -> bytes:
        if key == self._key:
            return bytes(self._row)
        row = self._kept.get(COMPARED, key)
        entries = b"" if row is None else row[0]
        assert isinstance(entries, bytes)
        return entries


def _name_digest(event_id: str, type_: str) -> bytes:
    return hashlib.blake2b(f"{event_id} {type_}".encode(), digest_size=NAME_BYTES).digest()


def _row_key(event_id: str) -> str:
    """Return the key of the row of `ledger/partition/seq/index`: neighbours in the order of ids
    share one, so that it is in memory when the next one comes."""
    lane, seq, _ = event_id.rsplit("/", 2)
    return f"{lane}/{seq[:-2]}"
