"""Ids of jobs by their beginning, in whatever order the database has for text."""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.execute('CREATE INDEX job_admission_prefix ON job_admission (job_id COLLATE "C")')
