"""When a pool was deleted: rows of its jobs still name it."""

from __future__ import annotations

from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.execute("ALTER TABLE pool ADD COLUMN deleted_at bigint NOT NULL DEFAULT 0")
