"""An index by which the use of late of a pool, or of a tenant in it, is read."""

from __future__ import annotations

from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.execute("CREATE INDEX job_usage_of_tenant ON job_usage (partition, tenant, day_at)")
