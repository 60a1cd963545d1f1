"""The port to a store of immutable objects; the adapter is `folder_store`."""

from __future__ import annotations

from typing import Protocol


class ObjectStore(Protocol):
    """Objects that are made once. All calls block; each raises ArchiveUnreachable."""

    def put_new(self, name: str, body: bytes) -> bool:
        """Make an object, durably, unless one of this name exists; return whether it did.

        After an error the outcome is unknown.
        """
        ...

    def get(self, name: str) -> bytes | None: ...

    def names(self, prefix: str) -> list[str]:
        """Return the last parts of the names directly below `prefix`, in order."""
        ...
