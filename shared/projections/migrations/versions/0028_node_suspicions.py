"""The suspicions from which the health of a node and of its GPUs follows."""

from __future__ import annotations

from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    op.execute("ALTER TABLE node ADD COLUMN suspicions text NOT NULL DEFAULT '[]'")
