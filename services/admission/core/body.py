"""The canonical form of a submitted body: its digest separates repetitions from conflicts."""

from __future__ import annotations

import hashlib

from shared.contracts.job_spec import JobSpec

DIGEST_CHARS = 32


def canonical_body(spec: JobSpec, array_size: int) -> bytes:
    """Encode without defaults: a field that a later version adds changes no digest of today."""
    pairs = {
        name: dict(sorted(value.items()))
        for name, value in (("env", spec.env), ("node_selector", spec.node_selector))
        if len(value) > 1
    }
    sorted_spec = spec.model_copy(update=pairs) if pairs else spec
    return f"{array_size}\n{sorted_spec.model_dump_json(exclude_defaults=True)}".encode()


def digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:DIGEST_CHARS]
