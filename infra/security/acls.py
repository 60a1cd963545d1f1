"""Who may do what on the broker: one table, derived from the contracts, and its application."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
from shared.contracts.topics import (
    CUSTODIAN,
    EVENTS_WRITER,
    INPUTS,
    LEDGERS,
    READS,
    SUBMISSIONS_READER,
    WRITER,
    submissions,
    tenant_events,
)

Kind = Literal["topic", "group", "cluster"]
Operation = Literal[
    "read", "write", "create", "delete", "alter", "describe", "describe_configs", "alter_configs"
]

SUBMISSIONS, EVENTS = submissions("").name, tenant_events("").name
"""What the names of tenants' topics begin with."""
ANY = "*"
CLUSTER = "kafka-cluster"
ITERATIONS = 8192
TENANT, SITE = "tenant.", "site."
"""Tenants' users begin with the one. The other is the installation's own, a monitor for example:
nobody here makes or removes them, or their ACLs."""
ADMIN, OPERATOR, VERIFY = "admin", "operator", "verify"
RESTORE = "restore"
MECHANISM = ScramMechanism.SCRAM_SHA_512
HOST = "*"


_IMPLIED: dict[str, tuple[str, ...]] = {
    "describe": ("read", "write", "delete", "alter"),
    "describe_configs": ("alter_configs",),
}
"""What Kafka takes for granted with another right."""


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """A user may do this to what has this name, or begins with it."""

    user: str
    operation: Operation
    kind: Kind
    name: str
    prefixed: bool = False

    def covers(self, operation: Operation, kind: Kind, name: str) -> bool:
        """As Kafka judges."""
        implied = self.operation in _IMPLIED.get(operation, ())
        if kind != self.kind or not (operation == self.operation or implied):
            return False
        if self.prefixed:
            return name.startswith(self.name)
        return self.name in (ANY, name)


class NotApplied(SystemExit):
    """The broker did not take what the table says."""


# ---- the table ----------------------------------------------------------------------------


def services() -> tuple[str, ...]:
    """Every service that speaks to the broker; each is a user of that name."""
    return tuple(dict.fromkeys((*LEDGERS, *WRITER.values(), *READS)))


def users() -> tuple[str, ...]:
    """All that have a password file: the services, and who works on the installation."""
    return (*services(), ADMIN, OPERATOR, VERIFY)


def table() -> frozenset[Grant]:
    """All grants but those of tenants."""
    rows = (row for service in services() for row in _service(service))
    return frozenset((*rows, *_admin(), *_operator(), *_verify()))


def of_tenant(tenant: str) -> frozenset[Grant]:
    """Publish its jobs, read what became of them, in groups named `<tenant>/...`: a slash cannot
    be part of another tenant's name."""
    user = TENANT + tenant
    return frozenset(
        {
            Grant(user, "write", "topic", submissions(tenant).name),
            Grant(user, "read", "topic", tenant_events(tenant).name),
            Grant(user, "read", "group", f"{tenant}/", prefixed=True),
        }
    )


def group_of(service: str) -> str:
    """The consumer group of a service, as `shared.bus.faust_host` and the gateway name it."""
    return f"berth-{service}"


def _service(service: str) -> Iterator[Grant]:
    reads = {*READS.get(service, ()), *INPUTS.get(service, ())}
    if service in LEDGERS:
        reads |= {service, "access"}
    yield from (Grant(service, "read", "topic", topic) for topic in reads)
    writes = (topic for topic, writer in WRITER.items() if writer == service)
    yield from (Grant(service, "write", "topic", topic) for topic in writes)
    if service == SUBMISSIONS_READER:
        yield Grant(service, "read", "topic", SUBMISSIONS, prefixed=True)
    if service == EVENTS_WRITER:
        yield Grant(service, "write", "topic", EVENTS, prefixed=True)
    if service in LEDGERS or service == SUBMISSIONS_READER:
        yield Grant(service, "read", "group", group_of(service))


def _admin() -> Iterator[Grant]:
    """Makes topics, users and ACLs; reads and writes no record. It could grant itself more."""
    yield Grant(ADMIN, "alter", "cluster", CLUSTER)
    for operation in ("create", "describe", "describe_configs", "alter_configs"):
        yield Grant(ADMIN, operation, "topic", ANY)
    # No ledger is ever deleted; a tenant's topics are, once it is gone.
    for prefix in (SUBMISSIONS, EVENTS):
        yield Grant(ADMIN, "delete", "topic", prefix, prefixed=True)
    yield Grant(ADMIN, "describe", "group", ANY)


def _operator() -> Iterator[Grant]:
    """The command line: the first key, a dead letter sent again, a replayed workload."""
    yield Grant(OPERATOR, "read", "topic", ANY)
    yield from (Grant(OPERATOR, "write", "topic", topic) for topic in CUSTODIAN)
    yield Grant(OPERATOR, "write", "topic", SUBMISSIONS, prefixed=True)
    yield Grant(OPERATOR, "describe", "group", ANY)


def _verify() -> Iterator[Grant]:
    yield Grant(VERIFY, "read", "topic", ANY)


def allows(grants: Iterable[Grant], user: str, operation: Operation, kind: Kind, name: str) -> bool:
    """What the broker must answer."""
    return any(each.user == user and each.covers(operation, kind, name) for each in grants)


# ---- the broker ---------------------------------------------------------------------------


def apply(admin: KafkaAdminClient, secrets: Path) -> None:
    """Make users, passwords and ACLs as the table and the files say; remove all others.

    Users of tenants stay, with exactly what a tenant may do; `site.*` are not touched. Run as
    often as you like: passwords are set anew each time, which disturbs no open connection.
    """
    kafka_users.make(secrets, users())
    known = scram_users(admin)
    ours = (*users(), *(user for user in known if user.startswith((TENANT, SITE))))
    set_passwords(admin, {user: kafka_users.password(secrets, user) for user in users()})
    forget(admin, [user for user in known if user not in ours])
    tenants = (user.removeprefix(TENANT) for user in known if user.startswith(TENANT))
    _settle(admin, table().union(*map(of_tenant, tenants)))


def create_user(admin: KafkaAdminClient, tenant: str) -> str:
    """A tenant's user with a new password, which is returned and kept nowhere; an old one ends."""
    password = kafka_users.new_password()
    set_passwords(admin, {TENANT + tenant: password})
    _add(admin, of_tenant(tenant))
    return password


def remove_user(admin: KafkaAdminClient, tenant: str) -> bool:
    """Take rights first: they end open connections' power at once. False: there was no user."""
    user = TENANT + tenant
    _remove(admin, {each for each in grants(admin) if each.user == user})
    was_known = user in scram_users(admin)
    forget(admin, [user] if was_known else [])
    return was_known


@contextmanager
def restorer(admin: KafkaAdminClient) -> Iterator[str]:
    """A user that writes ledgers back from a backup: `RESTORE`, for as long as the block lasts;
    yields its password. Nobody else may write what a decider wrote."""
    password = kafka_users.new_password()
    rights = {Grant(RESTORE, "read", "topic", ANY), Grant(RESTORE, "write", "topic", ANY)}
    set_passwords(admin, {RESTORE: password})
    _add(admin, rights)
    try:
        yield password
    finally:
        _remove(admin, rights)
        forget(admin, [RESTORE])


def scram_users(admin: KafkaAdminClient) -> list[str]:
    """Everybody with a password."""
    return sorted(admin.describe_user_scram_credentials())


def set_passwords(admin: KafkaAdminClient, passwords: dict[str, str]) -> None:
    """Made or changed at once, all or the ones that failed by name."""
    _alter(
        admin,
        [
            UserScramCredentialUpsertion(user, MECHANISM, password, iterations=ITERATIONS)
            for user, password in passwords.items()
        ],
    )


def forget(admin: KafkaAdminClient, names: Iterable[str]) -> None:
    """They cannot log in any more."""
    _alter(admin, [UserScramCredentialDeletion(name, MECHANISM) for name in names])


def grants(admin: KafkaAdminClient) -> set[Grant]:
    """Every ACL on the broker that is a grant of ours to make; a foreign kind is an error."""
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    found, _ = admin.describe_acls(
        ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, anything)
    )
    return {grant for acl in found if (grant := _grant(acl)) is not None}


def _settle(admin: KafkaAdminClient, wanted: frozenset[Grant]) -> None:
    there = grants(admin)
    _add(admin, wanted - there)
    _remove(admin, there - wanted)


def _alter(
    admin: KafkaAdminClient,
    changes: list[UserScramCredentialUpsertion] | list[UserScramCredentialDeletion],
) -> None:
    if not changes:
        return
    answers = admin.alter_user_scram_credentials(changes)
    if failed := {user: why for user, why in answers.items() if why is not None}:
        raise NotApplied(f"users {failed} were not changed")


def _add(admin: KafkaAdminClient, wanted: Iterable[Grant]) -> None:
    if not (acls := [_acl(grant) for grant in sorted(wanted)]):
        return
    if failed := admin.create_acls(acls)["failed"]:
        raise NotApplied(f"{len(failed)} ACLs were not made: {failed[0].__name__}")


def _remove(admin: KafkaAdminClient, unwanted: Iterable[Grant]) -> None:
    if not (filters := [_filter(grant) for grant in sorted(unwanted)]):
        return
    for asked, _, error in admin.delete_acls(filters):
        if error.errno:
            raise NotApplied(f"{asked}: {error.__name__}")


def _acl(grant: Grant) -> ACL:
    pattern = ResourcePattern(_KINDS[grant.kind], grant.name, _pattern(grant))
    return ACL(*_who(grant), ACLPermissionType.ALLOW, pattern)


def _filter(grant: Grant) -> ACLFilter:
    pattern = ResourcePatternFilter(_KINDS[grant.kind], grant.name, _pattern(grant))
    return ACLFilter(*_who(grant), ACLPermissionType.ALLOW, pattern)


def _who(grant: Grant) -> tuple[str, str, ACLOperation]:
    return f"{_USER}{grant.user}", HOST, ACLOperation[grant.operation.upper()]


def _pattern(grant: Grant) -> ACLResourcePatternType:
    kinds = ACLResourcePatternType
    return kinds.PREFIXED if grant.prefixed else kinds.LITERAL


def _grant(acl: ACL) -> Grant | None:
    """None for the installation's own. What the table cannot express would outlive it: an error."""
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
