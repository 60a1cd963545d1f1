"""Names the series of a job: jobs of one series are taken to do the same work."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from shared.contracts.job_spec import JobSpec

SERIES_CHARS = 16


def series_of(tenant: str, spec: JobSpec, workers: int, gpu_types: Iterable[str]) -> str:
    """Return a name by tenant, name of the job, GPU types and size."""
    size = f"{workers} x {spec.gang.gpus_per_worker:g}"
    parts = (tenant, spec.name, size, *sorted(set(gpu_types)))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:SERIES_CHARS]
