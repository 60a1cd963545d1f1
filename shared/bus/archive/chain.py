"""The chain of a partition's entries, each of which names the one before by its hash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.bus.archive.cut import ChainEnd
from shared.bus.archive.segment import ArchiveEntry, decode_entry, entry_name, sha256_of
from shared.ledger.errors import BadArchive
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor


class Chain:
    """The entries of one partition as far as they are read; it begins where the topic began."""

    def __init__(self, tp: TP) -> None:
        self.tp = tp
        self._entries: list[ArchiveEntry] = []
        self._sha256s: list[str] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> Sequence[ArchiveEntry]:
        return self._entries

    @property
    def next(self) -> int:
        """The first offset that is not archived."""
        return self.cursor.next

    @property
    def cursor(self) -> Cursor:
        """Return the position of a reader of all that is archived."""
        return self._entries[-1].after if self._entries else Cursor()

    @property
    def end(self) -> ChainEnd:
        if not self._entries:
            return ChainEnd()
        return ChainEnd(len(self) - 1, self._sha256s[-1], self._entries[-1].made_ms)

    def add(self, body: bytes) -> ArchiveEntry:
        """Take the next entry. Raises BadArchive if it does not follow the last one."""
        name = entry_name(self.tp, len(self))
        entry = decode_entry(body, name)
        expected = (self.tp, len(self), self.end.sha256, self.cursor, self.next)
        actual = (entry.tp, entry.n, entry.previous, entry.before, entry.first)
        if expected != actual or entry.next <= entry.first or entry.after.next != entry.next:
            raise BadArchive(f"{name}: does not follow entry {len(self) - 1} of {self.tp.key}")
        self._entries.append(entry)
        self._sha256s.append(sha256_of(body))
        return entry

    def sha256(self, n: int) -> str:
        return self._sha256s[n]

    def since(self, offset: int) -> Iterator[ArchiveEntry]:
        """Yield the entries with records from `offset` on."""
        return (entry for entry in list(self._entries) if entry.next > offset)


def check_numbers(tp: TP, names: Sequence[str]) -> None:
    """Raise BadArchive for names of entries with a hole: one is missing, and later ones are not."""
    numbers = sorted(int(name) for name in names if name.isdecimal())
    missing = next((n for n, number in enumerate(numbers) if n != number), None)
    if missing is not None:
        raise BadArchive(f"{entry_name(tp, missing)}: missing, and there are later entries")
