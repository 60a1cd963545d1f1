"""Roles of the read models, their grants, and the rows that each of them can see.

The owner of the schema cannot log in. The projector writes; the notifier writes its own tables, and
reads no others. The gateway selects, and sees only the
rows of the tenant that its transaction names: a route without a WHERE clause leaks nothing, and a
session that names no tenant sees no tenant's rows. For an operator the gateway takes on another
role. (One policy with an OR for both would be correct too, but the planner cannot estimate it: it
expected a handful of rows from every table, and chose nested loops.)
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from sqlalchemy import Connection, text

from shared.projections.database import OPERATOR

OWNER, PROJECTOR, GATEWAY = "berth_owner", "berth_projector", "berth_gateway"
NOTIFIER = "berth_notifier"
ROLES = (OWNER, PROJECTOR, GATEWAY, NOTIFIER, OPERATOR)
NOTIFIER_TABLES = ("notification", "notification_target", "notification_job", "notification_cursor")
"""Tables of the notifier, which no ledger can bring back: a rebuild keeps them."""
SCRAM_ROUNDS = 8192
SESSION = "current_setting('app.tenant', true)"
OWN_ROWS = f"tenant = {SESSION}"
FOR_ALL = f"{SESSION} <> ''"
FOR_OPERATORS = "false"

SHARED: dict[str, str] = {
    "node": FOR_ALL,
    "pool": FOR_ALL,
    "endpoint": FOR_ALL,
    "llm_fairness": FOR_ALL,
    "llm_endpoint": FOR_ALL,
    "retention": FOR_ALL,
    "mitigation": FOR_OPERATORS,
    "queue_rank": FOR_OPERATORS,
    "audit": FOR_OPERATORS,
    "cursor": FOR_OPERATORS,
}
"""Policies of tables without a tenant column that the gateway may read; no others are granted."""
SPECIAL = {
    # Some events of a job do not repeat its tenant.
    "job_event": f"{OWN_ROWS} OR tenant = '' AND EXISTS "
    "(SELECT FROM job_admission a WHERE a.job_id = job_event.job_id)"
}
OWNERS_VIEWS = frozenset({"gpu", "rank_head", "ranked_job"})
"""Views with the owner's rights; they show nothing that is private to a tenant."""

READERS = f'"{GATEWAY}", "{OPERATOR}", "{PROJECTOR}"'
MAKE_ROLE = """
DO $$ BEGIN
    CREATE ROLE "{role}" NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION {more};
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
"""
COLUMNS = """
SELECT c.relname, bool_or(a.attname = 'tenant')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = to_regnamespace(:schema) AND c.relkind = 'r'
GROUP BY c.relname ORDER BY c.relname
"""
RELATIONS = """
SELECT c.relname, c.relkind = 'v' FROM pg_class c
WHERE c.relnamespace = to_regnamespace(:schema) AND c.relkind IN ('r', 'v') ORDER BY c.relname
"""


def make_roles(connection: Connection) -> None:
    """Create the missing roles, without a password and unable to log in."""
    for role in ROLES:
        # The projector folds all tenants' events: it has no rows to hide, and COPY needs it.
        more = "BYPASSRLS" if role == PROJECTOR else "NOBYPASSRLS NOINHERIT"
        connection.exec_driver_sql(MAKE_ROLE.format(role=role, more=more))
    # The gateway does not inherit: it has these rights only after SET ROLE.
    connection.exec_driver_sql(f'GRANT "{OPERATOR}" TO "{GATEWAY}"')


def take_over(connection: Connection, schema: str) -> None:
    """Create the schema if needed, and give it and all its tables and views to the owner."""
    connection.exec_driver_sql(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    connection.exec_driver_sql(f'ALTER SCHEMA "{schema}" OWNER TO "{OWNER}"')
    for name, is_view in connection.execute(text(RELATIONS), {"schema": f'"{schema}"'}).all():
        kind = "VIEW" if is_view else "TABLE"
        connection.exec_driver_sql(f'ALTER {kind} "{schema}"."{name}" OWNER TO "{OWNER}"')


def secure(connection: Connection, schema: str) -> None:
    """Set grants and policies of every table and view that exists, so that none is forgotten."""
    parameters = {"schema": f'"{schema}"'}
    for table, has_tenant in connection.execute(text(COLUMNS), parameters).all():
        for statement in _secure_table(f'"{schema}"."{table}"', table, has_tenant):
            connection.exec_driver_sql(statement)
    for name, is_view in connection.execute(text(RELATIONS), parameters).all():
        if is_view:
            invoker = str(name not in OWNERS_VIEWS).lower()
            view = f'"{schema}"."{name}"'
            connection.exec_driver_sql(f"ALTER VIEW {view} SET (security_invoker = {invoker})")
            connection.exec_driver_sql(f"GRANT SELECT ON {view} TO {READERS}")
    connection.exec_driver_sql(f'REVOKE ALL ON SCHEMA "{schema}" FROM PUBLIC')
    connection.exec_driver_sql(f'GRANT USAGE ON SCHEMA "{schema}" TO {READERS}, "{NOTIFIER}"')


def _secure_table(table: str, name: str, has_tenant: bool) -> Iterator[str]:
    yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
    yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
    for policy in ("writer", "reader", "operator"):
        yield f"DROP POLICY IF EXISTS {policy} ON {table}"
    writer = NOTIFIER if name in NOTIFIER_TABLES else PROJECTOR
    writers = f'"{OWNER}", "{writer}"'
    yield f"CREATE POLICY writer ON {table} TO {writers} USING (true) WITH CHECK (true)"
    yield f'GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO "{writer}"'
    visible = SPECIAL.get(name, OWN_ROWS) if has_tenant else SHARED.get(name)
    if visible is not None:
        yield f'CREATE POLICY reader ON {table} FOR SELECT TO "{GATEWAY}" USING ({visible})'
        yield f'CREATE POLICY operator ON {table} FOR SELECT TO "{OPERATOR}" USING (true)'
        yield f'GRANT SELECT ON {table} TO "{GATEWAY}", "{OPERATOR}"'


def allow_logins(connection: Connection, addresses: Mapping[str, str]) -> None:
    """Let each role log in with the password of its address.

    The server gets only the SCRAM verifier, so that a log of statements cannot reveal the password.
    """
    for role, dsn in addresses.items():
        user, password = credentials(dsn)
        if user != role:
            raise ValueError(f"wrong user in the address of {role}: {user!r}; must be the role")
        verifier = scram_verifier(password, secrets.token_bytes(16))
        connection.exec_driver_sql(f"ALTER ROLE \"{role}\" LOGIN PASSWORD '{verifier}'")


def credentials(dsn: str) -> tuple[str, str]:
    """Return user and password of an address, the password also from its `passfile`."""
    parts = urlsplit(dsn)
    if parts.password is not None:
        return unquote(parts.username or ""), unquote(parts.password)
    passfile = parse_qs(parts.query).get("passfile", [""])[0]
    line = Path(passfile).read_text(encoding="utf-8") if passfile else ""
    return unquote(parts.username or ""), line.strip().rpartition(":")[2]


def scram_verifier(password: str, salt: bytes, rounds: int = SCRAM_ROUNDS) -> str:
    """Return the SCRAM verifier of an ASCII password, as Postgres stores it (RFC 5803)."""
    if not password or not password.isascii():
        raise ValueError("missing or non-ASCII password of a role")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    stored_key = hashlib.sha256(client_key).digest()
    encoded = [base64.b64encode(part).decode() for part in (salt, stored_key, server_key)]
    return f"SCRAM-SHA-256${rounds}:{encoded[0]}${encoded[1]}:{encoded[2]}"
