"""The fault that is injected on a node, for a drill."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.execute("ALTER TABLE node ADD COLUMN injection text NOT NULL DEFAULT 'null'")
