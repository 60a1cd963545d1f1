"""The version of control groups that limits the workers of a node."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute("ALTER TABLE node ADD COLUMN limits text NOT NULL DEFAULT ''")
