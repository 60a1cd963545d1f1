"""Rows that have left the read models, and indices for those of ended jobs."""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.execute(
        "CREATE TABLE retention (name text PRIMARY KEY, before_at bigint NOT NULL,"
        " leaving_at bigint NOT NULL, files integer NOT NULL, row_count bigint NOT NULL)"
    )
    op.execute("CREATE INDEX job_placement_ended ON job_placement (ended_at) WHERE ended_at > 0")
    op.execute(
        "CREATE INDEX job_admission_unplaced ON job_admission (decided_at)"
        " WHERE state IN ('rejected', 'cancelled')"
    )
