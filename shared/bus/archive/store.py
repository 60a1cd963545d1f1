"""The port to a store of immutable objects; adapters are `folder_store` and `s3_store`."""

from __future__ import annotations

from typing import Protocol

MARK = "berth-archive"
"""The object that makes a place an archive; `CONTENT` is in it."""
CONTENT = b"format 1\n"


class ObjectStore(Protocol):
    """Objects that are made once. All calls block; each raises ArchiveUnreachable."""

    def create(self) -> None:
        """Make the place an archive; it must be empty, or one already."""
        ...

    def check(self) -> None:
        """Raise ArchiveUnreachable if the place is no archive."""
        ...

    def put_new(self, name: str, body: bytes) -> bool:
        """Make an object, durably, unless one of this name exists; return whether it did.

        After an error the outcome is unknown.
        """
        ...

    def check_writable(self) -> None:
        """Return if an object could be made now."""
        ...

    def free_ratio(self) -> float | None:
        """Return the free share of the disk; None where there is no end of it."""
        ...

    def get(self, name: str) -> bytes | None: ...

    def names(self, prefix: str) -> list[str]:
        """Return the last parts of the names directly below `prefix`, in order."""
        ...
