"""An index for the answers to commands that leave by their age."""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0021"


def upgrade() -> None:
    op.execute("CREATE INDEX command_by_time ON command (at)")
