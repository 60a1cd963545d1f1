"""The waiting jobs of a tenant in the order in which a start is estimated by those before."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute(
        "CREATE INDEX job_placement_line ON job_placement"
        " (partition, tenant, waiting_since DESC, job_id DESC) WHERE phase = 'waiting'"
    )
