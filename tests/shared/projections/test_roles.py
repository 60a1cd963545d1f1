"""Row-level security: the rights of each role on the read models, for any query."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.access import TenantRegistered
from shared.contracts.admission import JobAdmitted, QuotaChanged
from shared.contracts.attempts import AllocationReleased, JobSucceeded
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.faults import FaultSuspected
from shared.contracts.job_spec import JobSpec
from shared.contracts.llm import LlmRequestQueued
from shared.contracts.placement import Allocation, JobEnqueued, JobHeld, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.rejected import InputRejected
from shared.projections.database import OPERATOR, connect
from shared.projections.migrate import migrate
from shared.projections.project import project
from shared.projections.rebuild import rebuild
from shared.projections.roles import GATEWAY, OWNER, PROJECTOR, ROLES, credentials, scram_verifier
from shared.projections.source import Source
from tests.shared.ledger_events import node_joined

TENANTS = ("anna", "bob")
ALL = "SELECT t::text AS t FROM {} t"
VISIBLE_RELATIONS = """
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'berth'::regnamespace
AND c.relkind IN ('r', 'v') AND has_table_privilege('berth_gateway', c.oid, 'SELECT')
ORDER BY c.relname
"""


def two_tenants() -> MemoryBroker:
    """Ledgers with every kind of row of two tenants; each id and text names its tenant."""
    broker = MemoryBroker()
    names = ("access", "admission", "priority", "placement", "failslow", "throttle")
    pens = {name: LedgerWriter(broker, name) for name in names}
    pens["access"].write(
        [
            PoolConfigured(pool="p", partition=0),
            EndpointConfigured(endpoint="llama", partition=0),
            *(TenantRegistered(tenant=name, default_pool="p") for name in TENANTS),
        ]
    )
    pens["placement"].write([node_joined()])
    for tenant in TENANTS:
        write_rows_of(tenant, pens)
    ranked = [Ranked(job_id=f"{name}-waits", score=n) for n, name in enumerate(TENANTS)]
    pens["priority"].write([QueueRanked(base_policy="fcfs", waiting=2, ranked=tuple(ranked))])
    return broker


def write_rows_of(tenant: str, pens: dict[str, LedgerWriter]) -> None:
    done, waits, spec = f"{tenant}-done", f"{tenant}-waits", JobSpec(name=f"{tenant}-name")
    admitted = [
        JobAdmitted(job_id=job, tenant=tenant, submitted_at=1, spec=spec) for job in (done, waits)
    ]
    pens["admission"].write(
        [
            CommandAccepted(
                command_id=f"{tenant}-c",
                command_type="t",
                of=done,
                tenant=tenant,
                principal=f"key:{tenant}",
            ),
            *admitted,
            QuotaChanged(tenant=tenant, guaranteed_gpus=8),
            InputRejected(
                topic=f"submissions.{tenant}",
                partition=0,
                offset=3,
                reason="no JSON",
                sha256="0" * 64,
                tenant=tenant,
            ),
        ]
    )
    entered = [
        JobEnqueued(job_id=j, tenant=tenant, submitted_at=1, spec=spec) for j in (done, waits)
    ]
    lease = Allocation(rank=0, node_id="n1", gpus=(0,))
    pens["placement"].write(entered)
    place = pens["placement"].write(
        [
            JobPlaced(
                job_id=done,
                tenant=tenant,
                attempt=1,
                allocations=(lease,),
                waited_ms=1,
                policy="fcfs",
            )
        ]
    )
    pens["placement"].write(
        [
            JobHeld(job_id=waits, tenant=tenant, reason="no_capacity", short_gpus=2),
            AllocationReleased(
                job_id=done,
                tenant=tenant,
                attempt=1,
                allocation_id=f"{place}/0",
                node_id="n1",
                reason="exited",
                exit_code=0,
            ),
            JobSucceeded(job_id=done, tenant=tenant, attempt=1, ran_ms=40, gpu_s=1),
        ]
    )
    pens["failslow"].write(
        [
            FaultSuspected(
                fault_id=f"{tenant}-f",
                job_id=done,
                tenant=tenant,
                node_id="n1",
                allocation_id="a",
                slowdown=2,
                iteration_s=2,
                peers_s=1,
                score=9,
                reports=3,
            )
        ]
    )
    pens["throttle"].write(
        [
            LlmRequestQueued(
                request_id=f"{tenant}-r",
                tenant=tenant,
                endpoint="llama",
                application="app",
                prompt_tokens=1,
                max_output_tokens=1,
            )
        ]
    )


@pytest.fixture
async def filled(database: str) -> str:
    await fold(database, two_tenants())
    return database


async def fold(dsn: str, broker: MemoryBroker) -> None:
    source = Source(MemoryLog(broker), 1)
    await source.start()
    async with session(dsn, PROJECTOR, None) as conn:
        while batches := await source.poll(0.05, 100):
            await project(conn, batches)
    await source.stop()


@asynccontextmanager
async def session(dsn: str, role: str, tenant: str | None) -> AsyncIterator[asyncpg.Connection]:
    """Connect with this role; with a tenant inside a transaction, since the setting is local."""
    conn = await connect(dsn)
    try:
        await conn.execute(f"SET ROLE {role}")
        if tenant is None:
            yield conn
        else:
            async with conn.transaction():
                await conn.execute(f"SET LOCAL app.tenant = '{tenant}'")
                yield conn
    finally:
        await conn.close()


async def everything(dsn: str, tenant: str | None) -> dict[str, list[str]]:
    """Select everything that the gateway can, without a WHERE: rows as text by table and view."""
    async with session(dsn, OPERATOR if tenant == "*" else GATEWAY, tenant) as conn:
        names = [row["relname"] for row in await conn.fetch(VISIBLE_RELATIONS)]
        return {
            name: [str(row["t"]) for row in await conn.fetch(ALL.format(name))] for name in names
        }


@pytest.mark.parametrize(("own", "foreign"), [TENANTS, TENANTS[::-1]])
async def test_a_query_without_where_returns_only_the_rows_of_its_tenant(
    filled: str, own: str, foreign: str
) -> None:
    visible = await everything(filled, own)
    for name, rows in visible.items():
        assert not [row for row in rows if foreign in row], name
    own_tables = {name for name, rows in visible.items() if any(own in row for row in rows)}
    assert own_tables >= {
        "job_admission",
        "job_placement",
        "job_event",
        "allocation",
        "tenant",
        "tenant_usage",
        "job_usage",
        "quota",
        "command",
        "dead_letter",
        "fault",
        "llm_request",
        "job",
        "queue",
        "ranked_job",
        "why_waiting",
        "usage_by_tenant",
    }
    assert (
        visible["queue_rank"] == visible["audit"] == []
        and visible["node"]
        and visible["pool"]
        and visible["gpu"]
    )


async def test_a_session_without_a_tenant_sees_no_rows_with_tenant(filled: str) -> None:
    for tenant in (None, "", "carol"):
        visible = await everything(filled, tenant)
        assert not [r for rows in visible.values() for r in rows if "anna" in r or "bob" in r]


async def test_an_operators_session_sees_every_row(filled: str) -> None:
    visible = await everything(filled, "*")
    async with session(filled, OWNER, None) as conn:
        for name, rows in visible.items():
            if name not in ("ranked_job", "queue"):
                assert len(rows) == len(await conn.fetch(ALL.format(name))), name
    for name in ("queue", "ranked_job", "queue_rank", "audit"):
        assert all(tenant in str(visible[name]) for tenant in TENANTS)


async def test_the_gateway_sees_all_rows_only_with_the_operators_role(filled: str) -> None:
    async with session(filled, GATEWAY, "*") as conn:
        assert await conn.fetchval("SELECT count(*) FROM job") == 0
        assert await conn.fetchval("SELECT count(*) FROM queue_rank") == 0
    conn = await connect(filled)
    await conn.execute(f"SET SESSION AUTHORIZATION {GATEWAY}")
    async with conn.transaction():
        await conn.execute(f"SET LOCAL ROLE {OPERATOR}; SET LOCAL app.tenant = '*'")
        assert await conn.fetchval("SELECT count(*) FROM job") == 4
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with conn.transaction():
                await conn.execute("DELETE FROM job_event")
    assert await conn.fetchval("SELECT current_user") == GATEWAY
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await conn.execute(f"SET ROLE {OWNER}")
    await conn.close()


async def test_the_tenant_of_a_transaction_ends_with_it(filled: str) -> None:
    conn = await connect(filled)
    await conn.execute(f"SET ROLE {GATEWAY}")
    async with conn.transaction():
        await conn.execute("SET LOCAL app.tenant = 'anna'")
        assert await conn.fetchval("SELECT count(*) FROM job") == 2
    assert await conn.fetchval("SELECT count(*) FROM job") == 0
    await conn.close()


async def test_every_table_forces_its_policies_on_its_owner_too(filled: str) -> None:
    conn = await connect(filled)
    rows = await conn.fetch(
        "SELECT relname, relrowsecurity AND relforcerowsecurity AS has_policies, "
        "pg_get_userbyid(relowner) AS owner FROM pg_class "
        "WHERE relnamespace = 'berth'::regnamespace AND relkind = 'r'"
    )
    await conn.close()
    assert len(rows) > 15
    assert {(row["has_policies"], row["owner"]) for row in rows} == {(True, OWNER)}


async def test_a_new_table_without_a_tenant_is_not_granted(filled: str) -> None:
    async with session(filled, OWNER, None) as conn:
        await conn.execute("CREATE TABLE without_tenant AS SELECT 1 AS secret")
        await conn.execute("CREATE TABLE with_tenant AS SELECT 'anna' AS tenant")
    await migrate(filled)
    visible = await everything(filled, "bob")
    assert "without_tenant" not in visible and visible["with_tenant"] == []
    assert (await everything(filled, "anna"))["with_tenant"]


async def test_roles_have_no_further_rights(filled: str) -> None:
    conn = await connect(filled)
    rows = await conn.fetch(
        "SELECT rolname, rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication AS more, "
        "rolbypassrls FROM pg_roles WHERE rolname = ANY($1)",
        list(ROLES),
    )
    await conn.close()
    assert [row["more"] for row in rows] == [False] * len(ROLES)
    assert [row["rolname"] for row in rows if row["rolbypassrls"]] == [PROJECTOR]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO tenant VALUES ('eve', 'p', 1, true, 1)",
        "UPDATE job_admission SET tenant = 'x'",
        "DELETE FROM job_event",
        "TRUNCATE allocation",
        "CREATE TABLE berth.mine (a int)",
        "CREATE SCHEMA mine",
        "CREATE ROLE mine",
        "DROP VIEW job",
        "ALTER TABLE tenant DISABLE ROW LEVEL SECURITY",
        "SELECT * FROM schema_version",
        "SELECT rolpassword FROM pg_authid",
        "COPY tenant TO PROGRAM 'cat'",
    ],
)
async def test_the_gateway_can_only_select(filled: str, statement: str) -> None:
    async with session(filled, GATEWAY, None) as conn:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE berth.mine (a int)",
        "CREATE SCHEMA mine",
        "DROP TABLE tenant",
        "TRUNCATE tenant",
        "ALTER TABLE tenant DISABLE ROW LEVEL SECURITY",
        "CREATE ROLE mine",
    ],
)
async def test_the_projector_can_only_write_rows(filled: str, statement: str) -> None:
    async with session(filled, PROJECTOR, None) as conn:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.execute(statement)


async def test_a_swapped_rebuild_has_the_same_policies(filled: str) -> None:
    before = await everything(filled, "anna")
    result = await rebuild(filled, MemoryLog(two_tenants()), 1, swap=True)
    assert result.swapped and not result.different
    assert await everything(filled, "anna") == before
    assert not [row for rows in before.values() for row in rows if "bob" in row]
    async with session(filled, PROJECTOR, None) as conn:
        await conn.execute("UPDATE tenant SET weight = 2")
    await migrate(filled)


async def test_tables_from_before_the_roles_get_their_owner(database: str) -> None:
    conn = await connect(database)
    tables = [
        r[0]
        for r in await conn.fetch(
            "SELECT relname FROM pg_class WHERE relkind = 'r' "
            "AND relnamespace = 'berth'::regnamespace"
        )
    ]
    for name in tables:
        await conn.execute(f"ALTER TABLE berth.{name} OWNER TO CURRENT_USER")
    await conn.close()
    await migrate(database)
    await fold(database, two_tenants())


def test_a_password_is_read_from_the_address_or_its_passfile(tmp_path: Path) -> None:
    assert credentials("postgresql://u:p%40ss@h/d") == ("u", "p@ss")
    (tmp_path / "u").write_text("*:*:*:u:secret\n")
    assert credentials(f"postgresql://u@/d?host=/r&passfile={tmp_path}/u") == ("u", "secret")
    assert credentials("postgresql://u@h/d?host=/run") == ("u", "")
    with pytest.raises(ValueError, match="missing"):
        scram_verifier("", b"salt")


async def test_a_role_logs_in_only_with_the_password_of_its_address(database: str) -> None:
    address = database.replace("//berth@", f"//{GATEWAY}:right%21@").partition("&passfile")[0]
    await migrate(database, logins={GATEWAY: address})
    conn = await asyncpg.connect(address)
    assert await conn.fetchval("SELECT current_user") == GATEWAY
    await conn.close()
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(address.replace("right", "wrong"))
    with pytest.raises(ValueError, match="wrong user"):
        await migrate(database, logins={PROJECTOR: address})
