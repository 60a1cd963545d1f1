"""How much work outlives a preemption."""

from __future__ import annotations

from shared.contracts.jobs import JobSpec


def kept_work_s(spec: JobSpec, done_s: float, ran_s: float) -> float:
    """Cluster seconds up to the last whole checkpoint; without checkpoints all is lost."""
    interval_s = spec.checkpoint_interval_s
    if interval_s is None or ran_s <= 0:
        return done_s
    return done_s + ran_s // interval_s * interval_s
