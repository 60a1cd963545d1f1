"""The ended jobs of a pool, 24 bytes each and kept for ever, so that a repeated submit is known."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Outcome = Literal["succeeded", "failed", "cancelled", "rejected", "transferred"]
OUTCOMES: tuple[Outcome, ...] = ("succeeded", "failed", "cancelled", "rejected", "transferred")

ID_BYTES = 16
DIGEST_CHARS = 10
ENTRY_BYTES = ID_BYTES + DIGEST_CHARS // 2 + 3
NO_DIGEST = "0" * DIGEST_CHARS
HEX_DIGEST = re.compile(f"[0-9a-fA-F]{{{DIGEST_CHARS}}}")


class EndedJob(NamedTuple):
    """The record of an ended job; `digest` is the beginning of its body's digest, in hex."""

    outcome: Outcome
    tenant: str
    digest: str


@dataclass(slots=True)
class EndedJobs:
    """A million jobs are 30 MB, and a few thousand objects to snapshot instead of millions."""

    buckets: dict[bytes, bytes] = field(default_factory=dict)
    tenant_numbers: dict[str, int] = field(default_factory=dict)
    tenant_names: list[str] = field(default_factory=list)
    count: int = 0

    def __len__(self) -> int:
        return self.count

    def add(self, job_id: str, job: EndedJob) -> None:
        key = hash_id(job_id)
        entry = b"".join(
            (
                key,
                pack_digest(job.digest),
                OUTCOMES.index(job.outcome).to_bytes(1, "big"),
                self._number(job.tenant).to_bytes(2, "big"),
            )
        )
        self.buckets[key[:2]] = self.buckets.get(key[:2], b"") + entry
        self.count += 1

    def get(self, job_id: str) -> EndedJob | None:
        key = hash_id(job_id)
        bucket = self.buckets.get(key[:2])
        if bucket is None:
            return None
        at = bucket.find(key)
        while at % ENTRY_BYTES and at > 0:
            at = bucket.find(key, at + 1)
        return None if at < 0 else self._parse(bucket[at + ID_BYTES : at + ENTRY_BYTES])

    def _parse(self, value: bytes) -> EndedJob:
        tenant = self.tenant_names[int.from_bytes(value[-2:], "big")]
        return EndedJob(OUTCOMES[value[-3]], tenant, value[:-3].hex())

    def _number(self, tenant: str) -> int:
        number = self.tenant_numbers.get(tenant)
        if number is None:
            number = self.tenant_numbers[tenant] = len(self.tenant_names)
            self.tenant_names.append(tenant)
        return number


def pack_digest(digest: str) -> bytes:
    """Return the beginning of a digest as `DIGEST_CHARS // 2` bytes, zeros if it is not hex.

    The contract allows any string; an entry of another width would shift those after it.
    """
    head = digest[:DIGEST_CHARS]
    return bytes.fromhex(head if HEX_DIGEST.fullmatch(head) else NO_DIGEST)


def hash_id(job_id: str) -> bytes:
    return hashlib.blake2b(job_id.encode("utf-8", "surrogatepass"), digest_size=ID_BYTES).digest()
