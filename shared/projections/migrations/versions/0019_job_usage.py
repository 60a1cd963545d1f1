"""Use of GPUs by user and day; jobs that are known already get their user."""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.execute("ALTER TABLE job_placement ADD COLUMN user_id text NOT NULL DEFAULT ''")
    op.execute(
        "UPDATE job_placement p SET user_id = a.user_id FROM job_admission a"
        " WHERE a.job_id = p.job_id AND a.user_id <> ''"
    )
    op.execute(
        "CREATE TABLE job_usage (usage_id text PRIMARY KEY, partition integer NOT NULL,"
        " day_at bigint NOT NULL, tenant text NOT NULL, user_id text NOT NULL,"
        " gpu_ms bigint NOT NULL, starts bigint NOT NULL, waited_ms bigint NOT NULL,"
        " succeeded bigint NOT NULL, failed bigint NOT NULL, cancelled bigint NOT NULL,"
        " preempted bigint NOT NULL, cost_millionths bigint NOT NULL)"
    )
    op.execute(
        "CREATE TABLE lane_price (lane text PRIMARY KEY, partition integer NOT NULL,"
        " gpu_hour_price float8 NOT NULL)"
    )
    op.execute("CREATE INDEX job_usage_day ON job_usage (day_at)")
