"""Bundles: the files of a job, as a compressed archive in parts that their contents name.

A bundle is named by the SHA-256 of its manifest, which lists those of its parts: who has the name
can check each byte.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final

from pydantic import Field

from shared.contracts.base import Model

PART_BYTES: Final = 1024 * 1024
"""Bytes of each part but the last, which may be shorter."""
MAX_PARTS: Final = 1024
NAME_PREFIX: Final = "sha256:"
BUNDLE: Final = r"^(sha256:[0-9a-f]{64})?$"
"""Pattern of the name of a bundle; empty: none."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Manifest(Model):
    """The parts of a bundle, in order: a gzip-compressed tar archive when they are joined."""

    parts: tuple[Sha256, ...] = Field(
        min_length=1, max_length=MAX_PARTS, description="SHA-256 of each part, in order"
    )
    size_bytes: int = Field(ge=1, description="bytes of all parts together")

    @property
    def content(self) -> bytes:
        """Return what is stored, and named by its SHA-256."""
        return self.model_dump_json().encode()

    @property
    def bundle(self) -> str:
        return NAME_PREFIX + hashlib.sha256(self.content).hexdigest()

    @property
    def sizes(self) -> dict[str, int]:
        """The bytes that each part has."""
        full = dict.fromkeys(self.parts[:-1], PART_BYTES)
        return full | {self.parts[-1]: self.size_bytes - PART_BYTES * (len(self.parts) - 1)}

    def fault(self) -> str:
        """Return what is wrong with its size, empty if nothing is."""
        full, count = (len(self.parts) - 1) * PART_BYTES, len(self.parts)
        if not full < self.size_bytes <= full + PART_BYTES:
            allowed = f"{full + 1} to {full + PART_BYTES}"
            return f"size_bytes: {self.size_bytes}: {count} parts have {allowed}"
        if self.parts[-1] in self.parts[:-1] and self.size_bytes < full + PART_BYTES:
            allowed = f"{full + PART_BYTES}, as the last part occurs before"
            return f"size_bytes: {self.size_bytes}: {count} parts have {allowed}"
        return ""
