"""Applies the table of rights to a broker: users, passwords and ACLs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from infra.security import kafka_users
from infra.security.rights import (
    ANY,
    RESTORE,
    SITE,
    TENANT,
    TRIM,
    Grant,
    Kind,
    Operation,
    of_tenant,
    table,
    users,
)

ITERATIONS = 8192
MECHANISM = ScramMechanism.SCRAM_SHA_512
HOST = "*"
TRIMMING: tuple[Operation, ...] = ("describe", "delete")


class NotApplied(SystemExit):
    """The broker rejected a change of users or ACLs."""


def apply(admin: KafkaAdminClient, secrets: Path) -> None:
    """Create users, passwords and ACLs according to the table and the files; remove all others.

    Users of tenants stay, with exactly the rights of a tenant; `site.*` are not touched.
    Idempotent: passwords are set again each time, which does not affect open connections.
    """
    kafka_users.make(secrets, users())
    existing = scram_users(admin)
    ours = (*users(), *(user for user in existing if user.startswith((TENANT, SITE))))
    set_passwords(admin, {user: kafka_users.password(secrets, user) for user in users()})
    remove_users(admin, [user for user in existing if user not in ours])
    tenants = (user.removeprefix(TENANT) for user in existing if user.startswith(TENANT))
    _settle(admin, table().union(*map(of_tenant, tenants)))


def create_user(admin: KafkaAdminClient, tenant: str) -> str:
    """Create or renew a tenant's user; return the new password, which is not stored."""
    password = kafka_users.new_password()
    set_passwords(admin, {TENANT + tenant: password})
    _add(admin, of_tenant(tenant))
    return password


def remove_user(admin: KafkaAdminClient, tenant: str) -> bool:
    """Remove a tenant's user, rights first, which affects open connections; False if none."""
    user = TENANT + tenant
    _remove(admin, {grant for grant in grants(admin) if grant.user == user})
    existed = user in scram_users(admin)
    remove_users(admin, [user] if existed else [])
    return existed


@contextmanager
def restorer(admin: KafkaAdminClient) -> Iterator[str]:
    """Create the user `RESTORE`, which may write ledgers, for the duration of the block; yield its
    password."""
    rights = {Grant(RESTORE, "read", "topic", ANY), Grant(RESTORE, "write", "topic", ANY)}
    with _temporary(admin, RESTORE, rights) as password:
        yield password


@contextmanager
def trimmer(admin: KafkaAdminClient, topics: Iterable[str]) -> Iterator[str]:
    """Create the user `TRIM`, which may delete records of these topics, for the duration of the
    block; yield its password. Kafka has no finer right: it could delete the topics as well."""
    rights = {Grant(TRIM, operation, "topic", name) for name in topics for operation in TRIMMING}
    with _temporary(admin, TRIM, rights) as password:
        yield password


@contextmanager
def _temporary(admin: KafkaAdminClient, user: str, rights: set[Grant]) -> Iterator[str]:
    password = kafka_users.new_password()
    set_passwords(admin, {user: password})
    _add(admin, rights)
    try:
        yield password
    finally:
        _remove(admin, rights)
        remove_users(admin, [user])


def scram_users(admin: KafkaAdminClient) -> list[str]:
    """Return all users with a password."""
    return sorted(admin.describe_user_scram_credentials())


def set_passwords(admin: KafkaAdminClient, passwords: dict[str, str]) -> None:
    """Set passwords. Raises NotApplied with the users that failed."""
    _alter(
        admin,
        [
            UserScramCredentialUpsertion(user, MECHANISM, password, iterations=ITERATIONS)
            for user, password in passwords.items()
        ],
    )


def remove_users(admin: KafkaAdminClient, names: Iterable[str]) -> None:
    """Remove users."""
    _alter(admin, [UserScramCredentialDeletion(name, MECHANISM) for name in names])


def grants(admin: KafkaAdminClient) -> set[Grant]:
    """Return the broker's ACLs as grants. Raises NotApplied for an ACL the table cannot express."""
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    acls, _ = admin.describe_acls(
        ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, anything)
    )
    return {grant for acl in acls if (grant := _grant(acl)) is not None}


def _settle(admin: KafkaAdminClient, desired: frozenset[Grant]) -> None:
    present = grants(admin)
    _add(admin, desired - present)
    _remove(admin, present - desired)


def _alter(
    admin: KafkaAdminClient,
    changes: list[UserScramCredentialUpsertion] | list[UserScramCredentialDeletion],
) -> None:
    if not changes:
        return
    answers = admin.alter_user_scram_credentials(changes)
    if failed := {user: why for user, why in answers.items() if why is not None}:
        raise NotApplied(f"users {failed} were not changed")


def _add(admin: KafkaAdminClient, desired: Iterable[Grant]) -> None:
    if not (acls := [_acl(grant) for grant in sorted(desired)]):
        return
    if failed := admin.create_acls(acls)["failed"]:
        raise NotApplied(f"{len(failed)} ACLs were not made: {failed[0].__name__}")


def _remove(admin: KafkaAdminClient, unwanted: Iterable[Grant]) -> None:
    if not (filters := [_filter(grant) for grant in sorted(unwanted)]):
        return
    for acl_filter, _, error in admin.delete_acls(filters):
        if error.errno:
            raise NotApplied(f"{acl_filter}: {error.__name__}")


def _acl(grant: Grant) -> ACL:
    pattern = ResourcePattern(_KINDS[grant.kind], grant.name, _pattern(grant))
    return ACL(*_acl_subject(grant), ACLPermissionType.ALLOW, pattern)


def _filter(grant: Grant) -> ACLFilter:
    pattern = ResourcePatternFilter(_KINDS[grant.kind], grant.name, _pattern(grant))
    return ACLFilter(*_acl_subject(grant), ACLPermissionType.ALLOW, pattern)


def _acl_subject(grant: Grant) -> tuple[str, str, ACLOperation]:
    return f"{_USER}{grant.user}", HOST, ACLOperation[grant.operation.upper()]


def _pattern(grant: Grant) -> ACLResourcePatternType:
    kinds = ACLResourcePatternType
    return kinds.PREFIXED if grant.prefixed else kinds.LITERAL


def _grant(acl: ACL) -> Grant | None:
    """Return the grant of an ACL, None for the site's own. Raises NotApplied."""
    user = acl.principal.removeprefix(_USER)
    if user.startswith(SITE):
        return None
    pattern = acl.resource_pattern
    kind = next((k for k, v in _KINDS.items() if v == pattern.resource_type), None)
    plain = acl.permission_type == ACLPermissionType.ALLOW and acl.host == HOST
    if kind is None or not plain or not acl.principal.startswith(_USER):
        raise NotApplied(f"{acl} is none of Berth's: remove it, or give its user a name in {SITE}*")
    prefixed = pattern.pattern_type == ACLResourcePatternType.PREFIXED
    operation: Operation = acl.operation.name.lower()
    return Grant(user, operation, kind, pattern.resource_name, prefixed)


_USER = "User:"
_KINDS: dict[Kind, ResourceType] = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
}
