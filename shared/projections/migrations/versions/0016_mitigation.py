"""Causes, losses and gains of faults; breaker and strictness of pools."""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.execute(
        "ALTER TABLE fault ADD COLUMN cause text NOT NULL DEFAULT 'unknown',"
        " ADD COLUMN part text NOT NULL DEFAULT '',"
        " ADD COLUMN lost_gpu_s float8 NOT NULL DEFAULT 0,"
        " ADD COLUMN cost_gpu_s float8 NOT NULL DEFAULT 0,"
        " ADD COLUMN avoided_gpu_s float8 NOT NULL DEFAULT 0"
    )
    op.execute(
        "CREATE TABLE mitigation (lane text PRIMARY KEY, partition integer NOT NULL,"
        " is_open boolean NOT NULL, plan_id text NOT NULL, nodes integer NOT NULL,"
        " out_of_use integer NOT NULL, most integer NOT NULL, worker_strictness float8 NOT NULL,"
        " job_strictness float8 NOT NULL)"
    )
