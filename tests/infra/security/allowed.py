"""The operations that a broker must allow by a table of grants: Kafka's own rules."""

from __future__ import annotations

from collections.abc import Iterable

from infra.security.rights import ANY, Grant, Kind, Operation

IMPLIED: dict[str, tuple[str, ...]] = {
    "describe": ("read", "write", "delete", "alter"),
    "describe_configs": ("alter_configs",),
}
"""Operations that Kafka implies by another one."""


def allows(grants: Iterable[Grant], user: str, operation: Operation, kind: Kind, name: str) -> bool:
    """Return whether the broker must allow an operation of a user."""
    return any(grant.user == user and covers(grant, operation, kind, name) for grant in grants)


def covers(grant: Grant, operation: Operation, kind: Kind, name: str) -> bool:
    """Return whether the grant allows the operation."""
    implied = grant.operation in IMPLIED.get(operation, ())
    if kind != grant.kind or not (operation == grant.operation or implied):
        return False
    return name.startswith(grant.name) if grant.prefixed else grant.name in (ANY, name)
