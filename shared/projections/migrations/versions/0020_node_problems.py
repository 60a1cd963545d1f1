"""Problems of a node that lives: a copy of its identity, a full disk."""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.execute("ALTER TABLE node ADD COLUMN problems text NOT NULL DEFAULT '[]'")
