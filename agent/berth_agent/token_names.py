"""Variables by which processes of an allocation are recognised; a step imports little else."""

from __future__ import annotations

TOKEN = "BERTH_WORKER_TOKEN"
"""Inherited by every process of a worker; see `berth_agent.tokens`."""
STEP_TOKEN = "BERTH_STEP_TOKEN"
"""As `TOKEN`, of the step process."""
