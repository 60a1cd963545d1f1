"""The archive of an installation: a store, and the chains of its partitions as far as known."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shared.bus.archive.chain import Chain, check_numbers
from shared.bus.archive.segment import (
    ArchiveEntry,
    chain_of,
    check_name,
    checks_of,
    encode_entry,
    entry_name,
    unpack,
)
from shared.bus.archive.store import ObjectStore
from shared.bus.archive.walk import Walk
from shared.bus.logs.log import Entry
from shared.ledger.errors import BadArchive
from shared.ledger.partition import TP


class CheckedMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The objects up to entry `n` were read back, and were those that the chain names."""

    n: int
    sha256: str
    """sha256 of entry `n` as it is stored."""
    made_ms: int


class Archive:
    """Reads and extends chains. All calls block, and are for one thread at a time.

    Raises BadArchive for objects that are missing or have other bytes than the chain says, and
    ArchiveUnreachable if the store does not answer.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._chains: dict[TP, Chain] = {}

    def refresh(self, tp: TP) -> Chain:
        """Read the entries that are new since the last call; return the chain."""
        chain = self._chains.setdefault(tp, Chain(tp))
        names = self._store.names(chain_of(tp))
        check_numbers(tp, names)
        if len(names) < len(chain):
            raise BadArchive(f"{entry_name(tp, len(names))}: missing, and was there before")
        while len(chain) < len(names):
            name = entry_name(tp, len(chain))
            if (body := self._store.get(name)) is None:
                raise BadArchive(f"{name}: missing, and its store lists it")
            chain.add(body)
        return chain

    def records(self, entry: ArchiveEntry, offset: int = 0) -> Iterator[Entry]:
        """Yield the records of an entry's object from `offset` on."""
        return unpack(entry, self._store.get(entry.object), offset)

    def put(self, entry: ArchiveEntry, body: bytes) -> bool:
        """Store an object, then its entry; return whether the entry is in the chain.

        Another archiver may have been first. What an error leaves open, the store answers: it has
        an entry with the name of its writer, or another, or none.
        """
        self._store.put_new(entry.object, body)
        name = entry_name(entry.tp, entry.n)
        if self._store.put_new(name, encode_entry(entry)):
            return True
        return self._store.get(name) == encode_entry(entry)

    def check(self, tp: TP, made_ms: int) -> int:
        """Read back what was not read back before, and mark it; return the first offset behind.

        Every boundary of the chain is a place to start, so the records are followed from the last
        mark on.
        """
        chain = self.refresh(tp)
        start = self.checked(tp)
        walk = Walk(tp, chain.entries[start].after if start >= 0 else None)
        for entry in chain.entries[start + 1 :]:
            for record in self.records(entry):
                walk.offer(record)
            if walk.cursor != entry.after:
                raise BadArchive(f"{entry.object}: ends otherwise than entry {entry.n} says")
        if len(chain) - 1 > start:
            mark = CheckedMark(len(chain) - 1, chain.end.sha256, made_ms)
            self._store.put_new(check_name(tp, mark.n), msgspec.json.encode(mark))
        return chain.next

    def checked(self, tp: TP) -> int:
        """Return the number of the last entry that was read back, -1 for none."""
        names = self._store.names(checks_of(tp))
        if not names:
            return -1
        name = f"{checks_of(tp)}/{names[-1]}"
        try:
            mark = msgspec.json.decode(self._store.get(name) or b"", type=CheckedMark)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise BadArchive(f"{name}: not the mark of a check: {error}") from None
        chain = self._chains.get(tp) or self.refresh(tp)
        if mark.n >= len(chain) or chain.sha256(mark.n) != mark.sha256:
            raise BadArchive(f"{name}: names another entry {mark.n} than the chain has")
        return mark.n
