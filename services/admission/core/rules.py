"""What a well-formed job may still not ask for: rules between fields, each with field and value."""

from __future__ import annotations

from collections.abc import Callable

from services.admission.core.verdict import Reject
from shared.contracts.access import PoolConfigured
from shared.contracts.jobs import JobSpec, SubmitJob

LONGEST_ID = 64
LARGEST_BODY_BYTES = 256 * 1024
"""Its events must fit a ledger's record, with room for their envelope."""

Rule = Callable[[JobSpec, PoolConfigured], str | None]


def workers_in_range(spec: JobSpec, pool: PoolConfigured) -> str | None:
    elastic, workers = spec.elastic, spec.gang.workers
    if elastic is None or elastic.min_workers <= workers <= elastic.max_workers:
        return None
    low, high = elastic.min_workers, elastic.max_workers
    return f"gang.workers: {workers}: must lie in the elastic range {low}..{high}"


def spot_yields(spec: JobSpec, pool: PoolConfigured) -> str | None:
    if spec.spot and not spec.preemptible:
        return "preemptible: false: a spot job yields to any other"
    if spec.spot and spec.guaranteed_s > 0:
        return f"guaranteed_s: {spec.guaranteed_s:g}: a spot job has no guarantee"
    return None


def has_program(spec: JobSpec, pool: PoolConfigured) -> str | None:
    """An image alone runs on none of the backends there are."""
    if spec.command or "virtual" in pool.backends:
        return None
    return f"command: (): pool {pool.pool} runs processes and needs one"


RULES: tuple[Rule, ...] = (workers_in_range, spot_yields, has_program)


def broken_rule(pool: PoolConfigured, wish: SubmitJob, body_bytes: int) -> Reject | None:
    if body_bytes > LARGEST_BODY_BYTES:
        detail = f"spec: {body_bytes} bytes: at most {LARGEST_BODY_BYTES} are taken"
        return Reject("too_large", detail)
    last_id = wish.job_id if wish.array_size == 1 else f"{wish.job_id}.{wish.array_size - 1}"
    if len(last_id) > LONGEST_ID:
        detail = f"job_id: {last_id!r}: ids of an array's jobs have at most {LONGEST_ID} characters"
        return Reject("invalid_spec", detail)
    for rule in RULES:
        broken = rule(wish.spec, pool)
        if broken is not None:
            return Reject("invalid_spec", broken)
    return None
