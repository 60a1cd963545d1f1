"""Jobs that have ended: 24 bytes each, for ever, so that a repeated submit finds them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Outcome = Literal["succeeded", "failed", "cancelled", "rejected"]
OUTCOMES: tuple[Outcome, ...] = ("succeeded", "failed", "cancelled", "rejected")

ID_BYTES = 16
DIGEST_CHARS = 10
ENTRY_BYTES = ID_BYTES + DIGEST_CHARS // 2 + 3
NO_DIGEST = "0" * DIGEST_CHARS


class Ended(NamedTuple):
    """What is left of a job; `digest` is the beginning of the body's digest, in hex."""

    outcome: Outcome
    tenant: str
    digest: str


@dataclass(slots=True)
class EndedJobs:
    """A million jobs are 30 MB, and a few thousand objects to snapshot instead of millions."""

    buckets: dict[bytes, bytes] = field(default_factory=dict)
    tenants: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    count: int = 0

    def __len__(self) -> int:
        return self.count

    def add(self, job_id: str, ended: Ended) -> None:
        key = short(job_id)
        entry = b"".join(
            (
                key,
                bytes.fromhex(ended.digest[:DIGEST_CHARS] or NO_DIGEST),
                OUTCOMES.index(ended.outcome).to_bytes(1, "big"),
                self._number(ended.tenant).to_bytes(2, "big"),
            )
        )
        self.buckets[key[:2]] = self.buckets.get(key[:2], b"") + entry
        self.count += 1

    def get(self, job_id: str) -> Ended | None:
        key = short(job_id)
        bucket = self.buckets.get(key[:2])
        if bucket is None:
            return None
        at = bucket.find(key)
        while at % ENTRY_BYTES and at > 0:
            at = bucket.find(key, at + 1)
        return None if at < 0 else self._entry(bucket[at + ID_BYTES : at + ENTRY_BYTES])

    def _entry(self, rest: bytes) -> Ended:
        tenant = self.names[int.from_bytes(rest[-2:], "big")]
        return Ended(OUTCOMES[rest[-3]], tenant, rest[:-3].hex())

    def _number(self, tenant: str) -> int:
        number = self.tenants.get(tenant)
        if number is None:
            number = self.tenants[tenant] = len(self.names)
            self.names.append(tenant)
        return number


def short(job_id: str) -> bytes:
    return hashlib.blake2b(job_id.encode("utf-8", "surrogatepass"), digest_size=ID_BYTES).digest()
