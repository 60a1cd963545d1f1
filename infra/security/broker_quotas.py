"""Quotas of users on the broker: bytes and request time of each tenant's user, none of services.

Kafka delays what exceeds a quota; it refuses nothing. The embedded broker has no quotas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest

from infra.security.rights import RESTORE, TRIM, users

DEFAULT: str | None = None
"""Its quotas hold for all users without quotas of their own."""
NO_BOUND = 1e15
UNBOUND = (*users(), RESTORE, TRIM)


class QuotaNotApplied(SystemExit):
    """The broker rejected a quota."""


class TenantQuota(NamedTuple):
    """Quota of a tenant's user on each broker."""

    producer_byte_rate: float
    """Bytes per second that it may write."""
    request_percentage: float
    """Percent of the time of one thread of the broker that its requests may use."""


def apply_quotas(admin: KafkaAdminClient, quota: TenantQuota) -> None:
    """Bind all users but Berth's own, also those that are created later. Idempotent."""
    entries = {DEFAULT: quota._asdict()}
    entries |= {user: dict.fromkeys(TenantQuota._fields, NO_BOUND) for user in UNBOUND}
    request = AlterClientQuotasRequest(
        entries=[_entry(user, values) for user, values in entries.items()], validate_only=False
    )
    answer = admin._manager.run(admin._manager.send, request)
    for entry in answer.entries:
        if entry.error_code:
            raise QuotaNotApplied(f"quota: {entry.error_code}: {entry.error_message}")


def _entry(user: str | None, values: Mapping[str, float]) -> tuple[object, ...]:
    return ([("user", user)], [(name, value, False) for name, value in values.items()])
