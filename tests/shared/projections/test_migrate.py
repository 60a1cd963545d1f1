"""Migrations are atomic, and run beside transactions that use the tables."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from shared.contracts.endpoints import EndpointConfigured
from shared.projections.database import connect
from shared.projections.migrate import HERE, migrate

WAITS_FOR_TENANT = """
SELECT true FROM pg_locks WHERE NOT granted AND relation = 'berth.tenant'::regclass
"""


def test_the_migrations_are_one_chain_and_have_one_head() -> None:
    chain = [revision.revision for revision in ScriptDirectory(HERE).walk_revisions("base", "head")]
    files = [path.name.partition("_")[0] for path in (HERE / "versions").glob("[0-9]*.py")]
    assert chain == sorted(files, reverse=True)


async def test_a_migration_gives_way_to_transactions_that_use_the_tables(database: str) -> None:
    conn, watch = await connect(database), await connect(database)
    async with conn.transaction():
        await conn.fetch("SELECT FROM berth.tenant")
        migrating = asyncio.create_task(migrate(database))
        # It has locked the tables of the first letters and waits for this one: a deadlock without a
        # lock timeout.
        while not await watch.fetchval(WAITS_FOR_TENANT):
            await asyncio.sleep(0.01)
        await conn.execute("UPDATE berth.command SET partition = partition")
        assert not migrating.done()
    await migrating
    await conn.close()
    await watch.close()


@pytest.mark.process
async def test_a_migration_without_a_server_ends_with_a_message(tmp_path: Path) -> None:
    environment = os.environ | {"BERTH_POSTGRES": f"postgresql://berth@/berth?host={tmp_path}"}
    program = [sys.executable, "-m", "shared.projections.migrate"]
    process = await asyncio.to_thread(
        subprocess.run, program, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    assert "nothing was changed" in process.stderr and "Traceback" not in process.stderr


BEFORE = """
ALTER TABLE berth.dead_letter
    DROP COLUMN message_id, DROP COLUMN message_type, DROP COLUMN is_quarantined,
    DROP COLUMN decision, DROP COLUMN decision_reason, DROP COLUMN decided_at,
    DROP COLUMN outcome, DROP COLUMN state, DROP COLUMN settled;
DROP INDEX berth.dead_letter_by_time, berth.job_placement_line, berth.command_by_time;
DROP VIEW berth.job;
ALTER TABLE berth.job_placement
    DROP COLUMN progressed_at, DROP COLUMN progress_step, DROP COLUMN progress_total,
    DROP COLUMN expected_end_at, DROP COLUMN user_id, DROP COLUMN pools,
    DROP COLUMN transferred_to;
ALTER TABLE berth.job_admission DROP COLUMN pools, DROP COLUMN transferred_to;
DROP TABLE berth.notification, berth.notification_target, berth.notification_job,
    berth.notification_cursor;
DROP TABLE berth.llm_usage, berth.llm_open, berth.llm_backlog, berth.llm_fairness,
    berth.llm_endpoint;
ALTER TABLE berth.llm_tenant
    DROP COLUMN cached_tokens, DROP COLUMN wasted_tokens, DROP COLUMN cost;
ALTER TABLE berth.llm_request
    DROP COLUMN user_id, DROP COLUMN model, DROP COLUMN interaction, DROP COLUMN stage,
    DROP COLUMN max_output_tokens, DROP COLUMN ahead, DROP COLUMN outcome, DROP COLUMN detail,
    DROP COLUMN retry_after_s, DROP COLUMN upstream, DROP COLUMN cached_tokens, DROP COLUMN cost;
DROP INDEX berth.llm_request_newest, berth.llm_request_ended;
ALTER TABLE berth.pool DROP COLUMN deleted_at;
ALTER TABLE berth.endpoint DROP COLUMN settings, DROP COLUMN deleted_at,
    ADD COLUMN tokens_per_s double precision NOT NULL,
    ADD COLUMN batch_tokens bigint NOT NULL;
INSERT INTO berth.endpoint VALUES ('chat', 2, 50, 4096);
ALTER TABLE berth.node DROP COLUMN limits, DROP COLUMN injection,
    DROP COLUMN problems, DROP COLUMN suspicions;
ALTER TABLE berth.fault DROP COLUMN cause, DROP COLUMN part, DROP COLUMN lost_gpu_s,
    DROP COLUMN cost_gpu_s, DROP COLUMN avoided_gpu_s;
DROP TABLE berth.mitigation, berth.retention, berth.job_usage, berth.lane_price;
DROP INDEX berth.job_placement_ended, berth.job_admission_unplaced,
    berth.job_admission_prefix, berth.job_placement_open, berth.job_admission_deferred,
    berth.job_admission_admitted, berth.job_admission_of_tenant, berth.job_admission_submissions,
    berth.job_admission_tenants_submissions, berth.job_admission_names, berth.job_placement_prefix;
DROP INDEX berth.command_submission;
ALTER TABLE berth.command DROP COLUMN principal;
CREATE INDEX job_placement_alive ON berth.job_placement (phase);
UPDATE berth.schema_version SET version_num = '0007';
INSERT INTO berth.dead_letter
    SELECT id, 'admission', 'commands', 0, 1, reason, '', '', 5
    FROM (VALUES ('a/0/1/0', 'no JSON'), ('a/0/2/0', 'set aside: E'), ('a/0/3/0', 'set aside: E'),
        ('a/0/4/0', 'set aside: E')) AS letter (id, reason);
INSERT INTO berth.command
    SELECT id, 'access', 0, type, input, '', accepted, false, '', '', 1, 7
    FROM (VALUES ('c1', 'input.skip.v1', 'a/0/3/0', true),
        ('c2', 'input.retry.v1', 'a/0/4/0', true), ('c3', 'input.skip.v1', 'a/0/2/0', false))
        AS answer (id, type, input, accepted)
"""


async def test_inputs_that_were_settled_before_their_state_was_kept_stay_settled(
    database: str,
) -> None:
    conn = await connect(database)
    await conn.execute(BEFORE)
    await migrate(database)
    rows = await conn.fetch("SELECT dead_id, state, decided_at FROM berth.dead_letter ORDER BY 1")
    assert [tuple(row) for row in rows] == [
        ("a/0/1/0", "rejected", 0),
        ("a/0/2/0", "open", 0),
        ("a/0/3/0", "skipped", 7),
        ("a/0/4/0", "retried", 7),
    ]
    [endpoint] = await conn.fetch("SELECT settings, deleted_at FROM berth.endpoint")
    settings = EndpointConfigured.model_validate_json(endpoint["settings"])
    assert settings == EndpointConfigured(endpoint="chat", partition=2, batch_tokens=4096)
    await conn.close()
